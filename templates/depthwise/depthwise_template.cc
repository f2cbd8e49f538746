#include "templates/depthwise/depthwise_template.h"

#include <fmt/format.h>

#include "templates/depthwise/depthwise_config.h"
#include "templates/depthwise/depthwise_geometry.h"
#include "templates/depthwise/depthwise_kernel.h"
#include "templates/depthwise/row_pairs.h"
#include "templates/support_checks.h"

namespace tilesmith {
namespace {

class Depthwise : public ConvTemplate {
 public:
  std::string_view Name() const override { return "depthwise"; }

  Support Supports(const ConvWorkload& w, const CpuInfo& cpu) const override {
    if (Support unfused = SupportsUnfused(w); !unfused.ok) return unfused;
    if (cpu.isa == Isa::kPortable)
      return Support::No("generates code for AVX2 or AVX-512, this CPU has neither");
    if (w.g != w.ic) return Support::No(fmt::format("groups of {} input channels, not 1", w.ic / w.g));
    if (w.oc != w.g)
      return Support::No(fmt::format("{} output channels per input channel, not 1", w.oc / w.g));
    if (Support fits = FitsDisplacements(w); !fits.ok) return fits;
    return HasValidDefault(*this, w, cpu);
  }

  ConfigSpace Space(const ConvWorkload& w, const CpuInfo& cpu) const override {
    return depthwise::DepthwiseSpace(w, cpu);
  }
  Config Default(const ConvWorkload& w, const CpuInfo& cpu) const override {
    return depthwise::DepthwiseDefault(w, cpu);
  }

  LayoutPair Layouts(const ConvWorkload&, const Config& config) const override {
    const Layout layout = LayoutOfBlockKnob(config.Get("block"));
    return {layout, layout};
  }

  double ErrorFactor(const ConvWorkload&, const Config& config) const override {
    return config.Get("pairs") != 0 ? depthwise::kPairErrorFactor : 1;
  }

  LoopFeatures Features(const ConvWorkload& w, const Config& config, const CpuInfo& cpu) const override {
    return depthwise::FeaturesOf(depthwise::MakeGeometry(w, depthwise::ReadConfig(config), cpu));
  }

  LoopNest Nest(const ConvWorkload& w, const Config& config, const CpuInfo& cpu) const override {
    return depthwise::NestOf(depthwise::MakeGeometry(w, depthwise::ReadConfig(config), cpu));
  }

  std::unique_ptr<ConvKernel> Build(const ConvWorkload& w, const Config& config, const CpuInfo& cpu,
                                    const ConvWeights& weights) const override {
    return depthwise::BuildDepthwiseKernel(depthwise::MakeGeometry(w, depthwise::ReadConfig(config), cpu),
                                           cpu, weights);
  }
};

}  // namespace

const ConvTemplate& DepthwiseTemplate() {
  static const Depthwise instance;
  return instance;
}

}  // namespace tilesmith
