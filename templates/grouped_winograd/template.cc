#include "templates/grouped_winograd/template.h"

#include "templates/base/schedule_template.h"
#include "templates/grouped_winograd/config.h"
#include "templates/grouped_winograd/schedule.h"

namespace tilesmith {
namespace grouped_winograd {
namespace {

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return MakeSchedule(w, ReadConfig(config), cpu.vector_floats());
}

}  // namespace
}  // namespace grouped_winograd

const ConvTemplate& GroupedWinogradTemplate() {
  static const X86Template<grouped_winograd::Schedule> instance({.name = "grouped_winograd",
                                                                 .supports = grouped_winograd::Supports,
                                                                 .space = grouped_winograd::Space,
                                                                 .preset = grouped_winograd::Default,
                                                                 .read = grouped_winograd::ReadSchedule,
                                                                 .error_factor = winograd::ErrorFactor});
  return instance;
}

}  // namespace tilesmith
