#include "templates/direct_int8/template.h"

#include "templates/base/schedule_template.h"
#include "templates/direct_int8/config.h"
#include "templates/direct_int8/schedule.h"

namespace tilesmith {
namespace direct_int8 {
namespace {

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return MakeSchedule(w, ReadConfig(config), cpu);
}

}  // namespace
}  // namespace direct_int8

const ConvTemplate& DirectInt8Template() {
  static const ScheduleTemplate<direct_int8::Schedule> instance({.name = "direct_int8",
                                                                 .type = DataType::kI8,
                                                                 .supports = direct_int8::Supports,
                                                                 .space = direct_int8::Space,
                                                                 .preset = direct_int8::Default,
                                                                 .read = direct_int8::ReadSchedule});
  return instance;
}

}  // namespace tilesmith
