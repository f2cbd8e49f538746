#include "templates/amx_int8/config.h"

#include "templates/base/schedule_template.h"
#include "templates/int8/byte_conv.h"

namespace tilesmith {
namespace amx_int8 {
namespace {

constexpr int64_t kNumberBytes = 1;

WindowPlan PresetOf(const ConvWorkload& w, const Target& cpu) {
  return WindowPlan(w, amx::FormOf(kNumberBytes), cpu.cores);
}

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

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  Schedule s{amx::MakeSchedule(w, amx::ReadConfig(config), cpu, kNumberBytes, w.bytes->in, w.bytes->out)};
  s.as_it_is = amx::AreInPlace(s);
  return s;
}

}  // namespace
}  // namespace amx_int8

const ConvTemplate& AmxInt8Template() {
  static const X86Template<amx_int8::Schedule> instance(
      {.name = "amx_int8",
       .type = DataType::kI8,
       .supports = amx_int8::Supports,
       .space = amx_int8::Space,
       .preset = amx_int8::Default,
       .read = amx_int8::ReadSchedule,
       .cycles = [](const amx_int8::Schedule& s, const Target& cpu) { return amx::CyclesOf(s, cpu); }});
  return instance;
}

}  // namespace tilesmith
