#include "templates/grouped/template.h"

#include "templates/base/schedule_template.h"
#include "templates/grouped/config.h"
#include "templates/grouped/schedule.h"

namespace tilesmith {
namespace grouped {
namespace {

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target&) {
  return MakeSchedule(w, ReadConfig(config));
}

}  // namespace
}  // namespace grouped

const ConvTemplate& GroupedTemplate() {
  static const X86Template<grouped::Schedule> instance({.name = "grouped",
                                                        .supports = grouped::Supports,
                                                        .space = grouped::Space,
                                                        .preset = grouped::Default,
                                                        .read = grouped::ReadSchedule});
  return instance;
}

}  // namespace tilesmith
