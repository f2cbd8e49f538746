#include "templates/amx_bf16/template.h"

#include "templates/amx_bf16/config.h"
#include "templates/amx_bf16/schedule.h"
#include "templates/base/schedule_template.h"

namespace tilesmith {
namespace amx_bf16 {
namespace {

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return MakeSchedule(w, ReadConfig(config), cpu);
}

}  // namespace
}  // namespace amx_bf16

const ConvTemplate& AmxBf16Template() {
  static const X86Template<amx_bf16::Schedule> instance(
      {.name = "amx_bf16",
       .fuses = true,
       .supports = amx_bf16::Supports,
       .space = amx_bf16::Space,
       .preset = amx_bf16::Default,
       .read = amx_bf16::ReadSchedule,
       .type_knobs = {"in_type", "out_type"},
       .factors = DataType::kBf16,
       .cycles = [](const amx_bf16::Schedule& s, const Target& cpu) { return amx::CyclesOf(s, cpu); }});
  return instance;
}

}  // namespace tilesmith
