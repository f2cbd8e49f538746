#include "templates/direct/template.h"

#include "templates/base/schedule_template.h"
#include "templates/direct/config.h"
#include "templates/direct/schedule.h"

namespace tilesmith {
namespace direct {
namespace {

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return MakeSchedule(w, ReadConfig(config), cpu.vector_floats());
}

}  // namespace
}  // namespace direct

const ConvTemplate& DirectTemplate() {
  static const X86Template<direct::Schedule> instance({.name = "direct",
                                                       .fuses = true,
                                                       .supports = direct::Supports,
                                                       .space = direct::Space,
                                                       .preset = direct::Default,
                                                       .rows_preset = direct::RowsDefault,
                                                       .read = direct::ReadSchedule,
                                                       .cycles = direct::CyclesOf});
  return instance;
}

}  // namespace tilesmith
