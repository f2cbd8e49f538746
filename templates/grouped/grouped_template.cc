#include "templates/grouped/grouped_template.h"

#include "templates/grouped/geometry.h"
#include "templates/grouped/grouped_kernel.h"
#include "templates/grouped/space.h"

namespace tilesmith {
namespace {

class Grouped : public ConvTemplate {
 public:
  std::string_view Name() const override { return "grouped"; }

  Support Supports(const ConvWorkload& w, const CpuInfo& cpu) const override {
    return grouped::WhatIsSupported(w, cpu);
  }
  ConfigSpace Space(const ConvWorkload& w, const CpuInfo& cpu) const override {
    return grouped::Space(w, cpu);
  }
  Config Default(const ConvWorkload& w, const CpuInfo& cpu) const override {
    return grouped::Default(w, cpu);
  }

  LayoutPair Layouts(const ConvWorkload&, const Config& config) const override {
    return {LayoutOfBlockKnob(config.Get("ic_block")), LayoutOfBlockKnob(config.Get("oc_block"))};
  }

  LoopFeatures Features(const ConvWorkload& w, const Config& config, const CpuInfo&) const override {
    return grouped::FeaturesOf(grouped::MakeGeometry(w, grouped::ReadConfig(config)));
  }

  LoopNest Nest(const ConvWorkload& w, const Config& config, const CpuInfo&) const override {
    return grouped::NestOf(grouped::MakeGeometry(w, grouped::ReadConfig(config)));
  }

  std::unique_ptr<ConvKernel> Build(const ConvWorkload& w, const Config& config, const CpuInfo& cpu,
                                    const ConvWeights& weights) const override {
    return grouped::BuildGroupedKernel(grouped::MakeGeometry(w, grouped::ReadConfig(config)), cpu, weights);
  }
};

}  // namespace

const ConvTemplate& GroupedTemplate() {
  static const Grouped instance;
  return instance;
}

}  // namespace tilesmith
