#include "templates/depthwise/template.h"

#include "templates/base/schedule_template.h"
#include "templates/depthwise/config.h"
#include "templates/depthwise/row_pairs.h"
#include "templates/depthwise/schedule.h"

namespace tilesmith {
namespace depthwise {
namespace {

double ErrorFactor(const ConvWorkload&, const Config& config) {
  return config.Get("pairs") != 0 ? kPairErrorFactor : 1;
}

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return MakeSchedule(w, ReadConfig(config), cpu);
}

}  // namespace
}  // namespace depthwise

const ConvTemplate& DepthwiseBf16Template() {
  static const X86Template<depthwise::Schedule> instance({.name = "depthwise_bf16",
                                                          .supports = depthwise::Supports,
                                                          .preset_decides = true,
                                                          .space = depthwise::Bf16Space,
                                                          .preset = depthwise::Bf16Default,
                                                          .read = depthwise::ReadSchedule,
                                                          .layout_knobs = {"block"},
                                                          .type_knobs = {"in_type", "out_type"},
                                                          .error_factor = depthwise::ErrorFactor});
  return instance;
}

const ConvTemplate& DepthwiseTemplate() {
  static const X86Template<depthwise::Schedule> instance({.name = "depthwise",
                                                          .supports = depthwise::Supports,
                                                          .preset_decides = true,
                                                          .space = depthwise::Space,
                                                          .preset = depthwise::Default,
                                                          .rows_preset = depthwise::RowsDefault,
                                                          .read = depthwise::ReadSchedule,
                                                          .layout_knobs = {"block"},
                                                          .error_factor = depthwise::ErrorFactor});
  return instance;
}

}  // namespace tilesmith
