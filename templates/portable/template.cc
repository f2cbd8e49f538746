#include "templates/portable/template.h"

#include "templates/base/schedule_template.h"
#include "templates/portable/config.h"
#include "templates/portable/schedule.h"

namespace tilesmith {
namespace portable {
namespace {

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return MakeSchedule(w, ReadConfig(config), cpu.vector_floats());
}

}  // namespace
}  // namespace portable

const ConvTemplate& PortableTemplate() {
  static const ScheduleTemplate<portable::Schedule> instance({.name = "portable",
                                                              .supports = portable::Supports,
                                                              .space = portable::Space,
                                                              .preset = portable::Default,
                                                              .read = portable::ReadSchedule});
  return instance;
}

}  // namespace tilesmith
