#include "templates/depthwise/depthwise_template.h"

#include <fmt/format.h>

#include <algorithm>

#include "templates/depthwise/depthwise_config.h"
#include "templates/depthwise/depthwise_geometry.h"
#include "templates/depthwise/depthwise_kernel.h"
#include "templates/depthwise/row_pairs.h"

namespace tilesmith {
namespace {

// Displacements and row strides are 32-bit in the generated code.
constexpr int64_t kMostImageBytes = 1LL << 30;

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
    const int64_t image_floats = std::max(w.oh * w.ow, w.ih * w.iw) * (w.oc + 64);
    if (image_floats * static_cast<int64_t>(sizeof(float)) > kMostImageBytes) {
      return Support::No(fmt::format("an image larger than {} MiB", kMostImageBytes >> 20));
    }
    const std::string reason = Space(w, cpu).WhyInvalid(Default(w, cpu));
    return reason.empty() ? Support::Yes() : Support::No("a kernel too wide: " + reason);
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
