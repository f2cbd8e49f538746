#include "templates/few_outputs/few_outputs_template.h"

#include "templates/few_outputs/few_outputs_kernel.h"
#include "templates/few_outputs/geometry.h"
#include "templates/few_outputs/space.h"

namespace tilesmith {
namespace {

class FewOutputs : public ConvTemplate {
 public:
  std::string_view Name() const override { return "few_outputs"; }

  Support Supports(const ConvWorkload& w, const CpuInfo& cpu) const override {
    return few_outputs::WhatIsSupported(w, cpu);
  }
  ConfigSpace Space(const ConvWorkload& w, const CpuInfo& cpu) const override {
    return few_outputs::Space(w, cpu);
  }
  Config Default(const ConvWorkload& w, const CpuInfo& cpu) const override {
    return few_outputs::Default(w, cpu);
  }

  LayoutPair Layouts(const ConvWorkload&, const Config&) const override {
    return {Layout::Nchw(), Layout::Nchw()};
  }

  LoopFeatures Features(const ConvWorkload& w, const Config& config, const CpuInfo&) const override {
    return few_outputs::FeaturesOf(few_outputs::MakeGeometry(w, few_outputs::ReadConfig(config)));
  }

  LoopNest Nest(const ConvWorkload& w, const Config& config, const CpuInfo&) const override {
    return few_outputs::NestOf(few_outputs::MakeGeometry(w, few_outputs::ReadConfig(config)));
  }

  std::unique_ptr<ConvKernel> Build(const ConvWorkload& w, const Config& config, const CpuInfo& cpu,
                                    const ConvWeights& weights) const override {
    return few_outputs::BuildFewOutputsKernel(few_outputs::MakeGeometry(w, few_outputs::ReadConfig(config)),
                                              cpu, weights);
  }
};

}  // namespace

const ConvTemplate& FewOutputsTemplate() {
  static const FewOutputs instance;
  return instance;
}

}  // namespace tilesmith
