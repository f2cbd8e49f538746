#include "templates/few_outputs/template.h"

#include "templates/base/schedule_template.h"
#include "templates/few_outputs/config.h"
#include "templates/few_outputs/schedule.h"

namespace tilesmith {
namespace few_outputs {
namespace {

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target&) {
  return MakeSchedule(w, ReadConfig(config));
}

}  // namespace
}  // namespace few_outputs

const ConvTemplate& FewOutputsTemplate() {
  static const X86Template<few_outputs::Schedule> instance({.name = "few_outputs",
                                                            .supports = few_outputs::Supports,
                                                            .space = few_outputs::Space,
                                                            .preset = few_outputs::Default,
                                                            .read = few_outputs::ReadSchedule,
                                                            .layout_knobs = {}});
  return instance;
}

}  // namespace tilesmith
