#include "templates/winograd/winograd_template.h"

#include <fmt/format.h>

#include <algorithm>

#include "templates/support_checks.h"
#include "templates/winograd/geometry.h"
#include "templates/winograd/transforms.h"
#include "templates/winograd/winograd_config.h"
#include "templates/winograd/winograd_kernel.h"

namespace tilesmith {
namespace {

// Below this the transforms cost more than the multiplications they save.
constexpr int64_t kFewestChannels = 8;

class Winograd : public ConvTemplate {
 public:
  std::string_view Name() const override { return "winograd"; }

  Support Supports(const ConvWorkload& w, const CpuInfo& cpu) const override {
    if (Support unfused = SupportsUnfused(w); !unfused.ok) return unfused;
    if (cpu.isa == Isa::kPortable)
      return Support::No("generates code for AVX2 or AVX-512, this CPU has neither");
    if (w.kh != 3 || w.kw != 3) return Support::No(fmt::format("a {}x{} kernel, not 3x3", w.kh, w.kw));
    if (w.sh != w.sw || w.sh > 2)
      return Support::No(fmt::format("stride {}x{}, neither 1 nor 2", w.sh, w.sw));
    if (w.dh != 0 || w.dw != 0) return Support::No("a dilated kernel");
    if (w.g != 1) return Support::No(fmt::format("{} groups, not 1", w.g));
    if (std::min(w.ic, w.oc) < kFewestChannels) {
      return Support::No(
          fmt::format("{} -> {} channels: with fewer than {} the transforms cost more than they save", w.ic,
                      w.oc, kFewestChannels));
    }
    if (Support fits = FitsDisplacements(w); !fits.ok) return fits;
    return HasValidDefault(*this, w, cpu);
  }

  ConfigSpace Space(const ConvWorkload& w, const CpuInfo& cpu) const override {
    return winograd::WinogradSpace(w, cpu);
  }
  Config Default(const ConvWorkload& w, const CpuInfo& cpu) const override {
    return winograd::WinogradDefault(w, cpu);
  }

  LayoutPair Layouts(const ConvWorkload&, const Config& config) const override {
    return {LayoutOfBlockKnob(config.Get("ic_block")), LayoutOfBlockKnob(config.Get("oc_block"))};
  }

  // A plain sum's bound counts `terms` roundings in a row, which random ones stay below by far: by
  // sqrt(terms) / 12 at twelve standard deviations. That leaves 4 / terms of the amplification to allow for.
  double ErrorFactor(const ConvWorkload& w, const Config& config) const override {
    const winograd::Transforms& transforms = winograd::TransformsOf(config.Get("tile"), w.sh);
    const auto terms = static_cast<double>(w.ic * w.kh * w.kw);
    return 1 + 4 * winograd::ErrorAmplification(transforms) / terms;
  }

  LoopFeatures Features(const ConvWorkload& w, const Config& config, const CpuInfo& cpu) const override {
    return winograd::FeaturesOf(
        winograd::MakeGeometry(w, winograd::ReadConfig(config, cpu), cpu.vector_floats()));
  }

  LoopNest Nest(const ConvWorkload& w, const Config& config, const CpuInfo& cpu) const override {
    return winograd::NestOf(
        winograd::MakeGeometry(w, winograd::ReadConfig(config, cpu), cpu.vector_floats()));
  }

  std::unique_ptr<ConvKernel> Build(const ConvWorkload& w, const Config& config, const CpuInfo& cpu,
                                    const ConvWeights& weights) const override {
    return winograd::BuildWinogradKernel(
        winograd::MakeGeometry(w, winograd::ReadConfig(config, cpu), cpu.vector_floats()), cpu, weights);
  }
};

}  // namespace

const ConvTemplate& WinogradTemplate() {
  static const Winograd instance;
  return instance;
}

}  // namespace tilesmith
