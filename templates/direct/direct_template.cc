#include "templates/direct/direct_template.h"

#include <fmt/format.h>

#include "templates/direct/direct_config.h"
#include "templates/direct/direct_kernel.h"
#include "templates/direct/geometry.h"
#include "templates/support_checks.h"

namespace tilesmith {
namespace {

class Direct : public ConvTemplate {
 public:
  std::string_view Name() const override { return "direct"; }

  Support Supports(const ConvWorkload& w, const CpuInfo& cpu) const override {
    if (cpu.isa == Isa::kPortable)
      return Support::No("generates code for AVX2 or AVX-512, this CPU has neither");
    if (!w.before.empty()) return Support::No("computes no other conv in front of the conv");
    const int64_t out_per_group = w.oc / w.g;
    if (w.g > 1 && 2 * out_per_group <= cpu.vector_floats()) {
      return Support::No(fmt::format("groups of {} output channels fill no more than half a vector of {}",
                                     out_per_group, cpu.vector_floats()));
    }
    if (Support fits = FitsDisplacements(w); !fits.ok) return fits;
    const std::string reason = direct::WhyNoDefault(w, cpu);
    return reason.empty() ? Support::Yes() : Support::No(reason);
  }

  ConfigSpace Space(const ConvWorkload& w, const CpuInfo& cpu) const override {
    return direct::DirectSpace(w, cpu);
  }
  Config Default(const ConvWorkload& w, const CpuInfo& cpu) const override {
    return direct::DirectDefault(w, cpu);
  }

  LayoutPair Layouts(const ConvWorkload&, const Config& config) const override {
    return {LayoutOfBlockKnob(config.Get("ic_block")), LayoutOfBlockKnob(config.Get("oc_block"))};
  }

  LoopFeatures Features(const ConvWorkload& w, const Config& config, const CpuInfo& cpu) const override {
    return direct::FeaturesOf(direct::MakeGeometry(w, direct::ReadConfig(config), cpu.vector_floats()));
  }

  LoopNest Nest(const ConvWorkload& w, const Config& config, const CpuInfo& cpu) const override {
    return direct::NestOf(direct::MakeGeometry(w, direct::ReadConfig(config), cpu.vector_floats()));
  }

  std::unique_ptr<ConvKernel> Build(const ConvWorkload& w, const Config& config, const CpuInfo& cpu,
                                    const ConvWeights& weights) const override {
    return direct::BuildDirectKernel(direct::MakeGeometry(w, direct::ReadConfig(config), cpu.vector_floats()),
                                     cpu, weights);
  }
};

}  // namespace

const ConvTemplate& DirectTemplate() {
  static const Direct instance;
  return instance;
}

}  // namespace tilesmith
