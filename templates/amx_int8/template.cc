#include "templates/amx_int8/template.h"

#include "templates/amx_int8/config.h"
#include "templates/amx_int8/schedule.h"
#include "templates/base/schedule_template.h"

namespace tilesmith {
namespace amx_int8 {
namespace {

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return MakeSchedule(w, amx::ReadConfig(config), cpu);
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
