#include "templates/grouped_winograd/grouped_winograd_template.h"

#include "templates/grouped_winograd/grouped_winograd_config.h"
#include "templates/grouped_winograd/grouped_winograd_kernel.h"
#include "templates/winograd/transforms.h"

namespace tilesmith {
namespace {

class GroupedWinograd : public ConvTemplate {
 public:
  std::string_view Name() const override { return "grouped_winograd"; }

  Support Supports(const ConvWorkload& w, const CpuInfo& cpu) const override {
    return grouped_winograd::WhatIsSupported(w, cpu);
  }
  ConfigSpace Space(const ConvWorkload& w, const CpuInfo& cpu) const override {
    return grouped_winograd::Space(w, cpu);
  }
  Config Default(const ConvWorkload& w, const CpuInfo& cpu) const override {
    return grouped_winograd::Default(w, cpu);
  }

  LayoutPair Layouts(const ConvWorkload&, const Config& config) const override {
    return {LayoutOfBlockKnob(config.Get("ic_block")), LayoutOfBlockKnob(config.Get("oc_block"))};
  }

  // As for the Winograd template, with a group's terms.
  double ErrorFactor(const ConvWorkload& w, const Config& config) const override {
    const winograd::Transforms& transforms = winograd::TransformsOf(config.Get("tile"), w.sh);
    const int64_t sum = w.ic / w.g * w.kh * w.kw;
    const auto terms = static_cast<double>(sum);
    return 1 + 4 * winograd::ErrorAmplification(transforms) / terms;
  }

  LoopFeatures Features(const ConvWorkload& w, const Config& config, const CpuInfo& cpu) const override {
    const grouped_winograd::GroupedWinogradConfig c = grouped_winograd::ReadConfig(config);
    return grouped_winograd::FeaturesOf(grouped_winograd::MakeGeometry(w, c, cpu.vector_floats()), c);
  }

  LoopNest Nest(const ConvWorkload& w, const Config& config, const CpuInfo& cpu) const override {
    const grouped_winograd::GroupedWinogradConfig c = grouped_winograd::ReadConfig(config);
    return grouped_winograd::NestOf(grouped_winograd::MakeGeometry(w, c, cpu.vector_floats()), c);
  }

  std::unique_ptr<ConvKernel> Build(const ConvWorkload& w, const Config& config, const CpuInfo& cpu,
                                    const ConvWeights& weights) const override {
    return grouped_winograd::BuildGroupedWinogradKernel(w, grouped_winograd::ReadConfig(config), cpu,
                                                        weights);
  }
};

}  // namespace

const ConvTemplate& GroupedWinogradTemplate() {
  static const GroupedWinograd instance;
  return instance;
}

}  // namespace tilesmith
