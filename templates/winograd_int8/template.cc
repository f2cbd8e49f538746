#include "templates/winograd_int8/template.h"

#include "templates/base/schedule_template.h"
#include "templates/winograd_int8/config.h"
#include "templates/winograd_int8/schedule.h"

namespace tilesmith {
namespace winograd_int8 {
namespace {

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return MakeSchedule(w, ReadConfig(config), cpu);
}

}  // namespace
}  // namespace winograd_int8

const ConvTemplate& WinogradInt8Template() {
  static const ScheduleTemplate<winograd_int8::Schedule> instance({.name = "winograd_int8",
                                                                   .type = DataType::kI8,
                                                                   .supports = winograd_int8::Supports,
                                                                   .space = winograd_int8::Space,
                                                                   .preset = winograd_int8::Default,
                                                                   .read = winograd_int8::ReadSchedule});
  return instance;
}

}  // namespace tilesmith
