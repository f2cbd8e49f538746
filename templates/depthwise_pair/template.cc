#include "templates/depthwise_pair/template.h"

#include "templates/base/schedule_template.h"
#include "templates/depthwise/row_pairs.h"
#include "templates/depthwise_pair/config.h"
#include "templates/depthwise_pair/schedule.h"

namespace tilesmith {
namespace depthwise_pair {
namespace {

double ErrorFactor(const ConvWorkload&, const Config& config) {
  return config.Get("dw_pairs") != 0 ? depthwise::kPairErrorFactor : 1;
}

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return MakeSchedule(w, ReadConfig(w, cpu, config), cpu);
}

}  // namespace
}  // namespace depthwise_pair

const ConvTemplate& DepthwisePairTemplate() {
  static const X86Template<depthwise_pair::Schedule> instance({.name = "depthwise_pair",
                                                               .fuses = true,
                                                               .supports = depthwise_pair::Supports,
                                                               .preset_decides = true,
                                                               .space = depthwise_pair::Space,
                                                               .preset = depthwise_pair::Default,
                                                               .read = depthwise_pair::ReadSchedule,
                                                               .error_factor = depthwise_pair::ErrorFactor});
  return instance;
}

}  // namespace tilesmith
