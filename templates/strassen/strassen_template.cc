#include "templates/strassen/strassen_template.h"

#include <fmt/format.h>

#include "templates/strassen/geometry.h"
#include "templates/strassen/strassen_config.h"
#include "templates/strassen/strassen_kernel.h"
#include "templates/support_checks.h"

namespace tilesmith {
namespace {

// Below this the additions cost more than the multiplications they save.
constexpr int64_t kFewestChannels = 96;

class Strassen : public ConvTemplate {
 public:
  std::string_view Name() const override { return "strassen"; }

  Support Supports(const ConvWorkload& w, const CpuInfo& cpu) const override {
    if (Support unfused = SupportsUnfused(w); !unfused.ok) return unfused;
    if (cpu.isa == Isa::kPortable)
      return Support::No("generates code for AVX2 or AVX-512, this CPU has neither");
    if (w.kh != 1 || w.kw != 1) return Support::No(fmt::format("a {}x{} kernel, not 1x1", w.kh, w.kw));
    const bool padded = w.ph > 0 || w.pw > 0 || (w.oh - 1) * w.sh >= w.ih || (w.ow - 1) * w.sw >= w.iw;
    if (padded) return Support::No("padding");
    if (w.g != 1) return Support::No(fmt::format("{} groups, not 1", w.g));
    for (const int64_t channels : {w.ic, w.oc}) {
      if (channels < kFewestChannels) {
        return Support::No(
            fmt::format("{} -> {} channels: with fewer than {} the additions cost more than they save", w.ic,
                        w.oc, kFewestChannels));
      }
      if (channels % (2 * cpu.vector_floats()) != 0)
        return Support::No(fmt::format("{} channels, whose halves do not fill vectors", channels));
    }
    if (w.oh * w.ow == 1) return Support::No("one pixel, which makes no pair");
    if (Support fits = FitsDisplacements(w, 0); !fits.ok) return fits;
    return HasValidDefault(*this, w, cpu);
  }

  ConfigSpace Space(const ConvWorkload& w, const CpuInfo& cpu) const override {
    return strassen::StrassenSpace(w, cpu);
  }
  Config Default(const ConvWorkload& w, const CpuInfo& cpu) const override {
    return strassen::StrassenDefault(w, cpu);
  }

  LayoutPair Layouts(const ConvWorkload&, const Config& config) const override {
    return {LayoutOfBlockKnob(config.Get("ic_block")), LayoutOfBlockKnob(config.Get("oc_block"))};
  }

  // Of data without structure, operands have the variance of as many elements as they add up. C12 adds P1
  // (1), P6 (3 * 3), P5 (2 * 2) and P3 (4 * 1), where a plain sum of as many terms has 2: 3 times larger,
  // squared; C21 and C22 likewise. What that is of the bound for plain sums: see the Winograd template.
  double ErrorFactor(const ConvWorkload& w, const Config&) const override {
    constexpr double kAmplification = 3;
    return 1 + 4 * kAmplification / static_cast<double>(w.ic);
  }

  LoopFeatures Features(const ConvWorkload& w, const Config& config, const CpuInfo& cpu) const override {
    return strassen::FeaturesOf(GeometryOf(w, config, cpu));
  }

  LoopNest Nest(const ConvWorkload& w, const Config& config, const CpuInfo& cpu) const override {
    return strassen::NestOf(GeometryOf(w, config, cpu));
  }

  std::unique_ptr<ConvKernel> Build(const ConvWorkload& w, const Config& config, const CpuInfo& cpu,
                                    const ConvWeights& weights) const override {
    return strassen::BuildStrassenKernel(GeometryOf(w, config, cpu), cpu, weights);
  }

 private:
  static strassen::Geometry GeometryOf(const ConvWorkload& w, const Config& config, const CpuInfo& cpu) {
    return strassen::MakeGeometry(w, strassen::ReadConfig(config, cpu), cpu.vector_floats());
  }
};

}  // namespace

const ConvTemplate& StrassenTemplate() {
  static const Strassen instance;
  return instance;
}

}  // namespace tilesmith
