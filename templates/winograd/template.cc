#include "templates/winograd/template.h"

#include "templates/base/schedule_template.h"
#include "templates/winograd/config.h"
#include "templates/winograd/schedule.h"

namespace tilesmith {
namespace winograd {
namespace {

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return MakeSchedule(w, ReadConfig(config, cpu), cpu.vector_floats());
}

}  // namespace
}  // namespace winograd

const ConvTemplate& WinogradTemplate() {
  static const X86Template<winograd::Schedule> instance({.name = "winograd",
                                                         .supports = winograd::Supports,
                                                         .preset_decides = true,
                                                         .space = winograd::Space,
                                                         .preset = winograd::Default,
                                                         .read = winograd::ReadSchedule,
                                                         .error_factor = winograd::ErrorFactor,
                                                         .cycles = winograd::CyclesOf});
  return instance;
}

const ConvTemplate& WinogradBf16Template() {
  static const X86Template<winograd::Schedule> instance({.name = "winograd_bf16",
                                                         .supports = winograd::Supports,
                                                         .preset_decides = true,
                                                         .space = winograd::Bf16Space,
                                                         .preset = winograd::Bf16Default,
                                                         .read = winograd::ReadSchedule,
                                                         .type_knobs = {"in_type", "out_type"},
                                                         .error_factor = winograd::ErrorFactor,
                                                         .bf16_noise = winograd::Bf16Noise,
                                                         .cycles = winograd::CyclesOf});
  return instance;
}

}  // namespace tilesmith
