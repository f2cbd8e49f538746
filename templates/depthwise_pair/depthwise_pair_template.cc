#include "templates/depthwise_pair/depthwise_pair_template.h"

#include "templates/depthwise/row_pairs.h"
#include "templates/depthwise_pair/pair_config.h"
#include "templates/depthwise_pair/pair_geometry.h"
#include "templates/depthwise_pair/pair_kernel.h"
#include "templates/support_checks.h"

namespace tilesmith {
namespace {

class DepthwisePair : public ConvTemplate {
 public:
  std::string_view Name() const override { return "depthwise_pair"; }

  Support Supports(const ConvWorkload& w, const CpuInfo& cpu) const override {
    if (cpu.isa == Isa::kPortable)
      return Support::No("generates code for AVX2 or AVX-512, this CPU has neither");
    if (depthwise_pair::KindOf(w) == depthwise_pair::PairKind::kNone)
      return Support::No("not a depthwise conv and a 1x1 conv of stride 1");
    if (Support fits = FitsDisplacements(w); !fits.ok) return fits;
    return HasValidDefault(*this, w, cpu);
  }

  ConfigSpace Space(const ConvWorkload& w, const CpuInfo& cpu) const override {
    return depthwise_pair::PairSpace(w, cpu);
  }
  Config Default(const ConvWorkload& w, const CpuInfo& cpu) const override {
    return depthwise_pair::PairDefault(w, cpu);
  }

  LayoutPair Layouts(const ConvWorkload&, const Config& config) const override {
    return {LayoutOfBlockKnob(config.Get("ic_block")), LayoutOfBlockKnob(config.Get("oc_block"))};
  }

  double ErrorFactor(const ConvWorkload&, const Config& config) const override {
    return config.Get("dw_pairs") != 0 ? depthwise::kPairErrorFactor : 1;
  }

  LoopFeatures Features(const ConvWorkload& w, const Config& config, const CpuInfo& cpu) const override {
    return depthwise_pair::FeaturesOf(
        depthwise_pair::MakeGeometry(w, depthwise_pair::ReadConfig(w, cpu, config), cpu));
  }

  LoopNest Nest(const ConvWorkload& w, const Config& config, const CpuInfo& cpu) const override {
    return depthwise_pair::NestOf(
        depthwise_pair::MakeGeometry(w, depthwise_pair::ReadConfig(w, cpu, config), cpu));
  }

  std::unique_ptr<ConvKernel> Build(const ConvWorkload& w, const Config& config, const CpuInfo& cpu,
                                    const ConvWeights& weights) const override {
    return depthwise_pair::BuildPairKernel(
        depthwise_pair::MakeGeometry(w, depthwise_pair::ReadConfig(w, cpu, config), cpu), cpu, weights);
  }
};

}  // namespace

const ConvTemplate& DepthwisePairTemplate() {
  static const DepthwisePair instance;
  return instance;
}

}  // namespace tilesmith
