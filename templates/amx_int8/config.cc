#include "templates/amx_int8/config.h"

#include "ops/quantize/quantized_conv_plan.h"
#include "templates/base/byte_conv.h"

namespace tilesmith::amx_int8 {
namespace {

WindowPlan PresetOf(const ConvWorkload& w, const Target& cpu) {
  return WindowPlan(w, amx::FormOf(kNumberBytes), cpu.cores);
}

}  // namespace

Support Supports(const ConvWorkload& w, const Target& cpu) {
  if (Support supported = amx::Supports(w, cpu, kNumberBytes); !supported.ok) return supported;
  if (!MultipliesBytes(w, cpu)) return Support::No("its weights are no bytes with a sign");
  return Support::Yes();
}

ConfigSpace Space(const ConvWorkload& w, const Target& cpu) {
  const WindowPlan preset = PresetOf(w, cpu);
  return ConfigSpace(amx::Knobs(preset, ByteLayoutKnobs(w)[0].values, amx::OutputBlocks(w)),
                     [w, cpu, preset](const Config& config) {
                       return amx::WhyInvalid(w, cpu, preset, amx::ReadConfig(config).cut);
                     });
}

Config Default(const ConvWorkload& w, const Target& cpu) { return amx::DefaultOf(PresetOf(w, cpu)); }

}  // namespace tilesmith::amx_int8
