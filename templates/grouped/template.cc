#include "templates/grouped/template.h"

#include "templates/base/schedule_template.h"
#include "templates/grouped/config.h"
#include "templates/grouped/schedule.h"

namespace tilesmith {
namespace grouped {
namespace {

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return MakeSchedule(w, ReadConfig(config, cpu));
}

}  // namespace
}  // namespace grouped

const ConvTemplate& GroupedBf16Template() {
  static const X86Template<grouped::Schedule> instance({.name = "grouped_bf16",
                                                        .supports = grouped::SupportsBf16,
                                                        .space = grouped::Bf16Space,
                                                        .preset = grouped::Bf16Default,
                                                        .read = grouped::ReadSchedule,
                                                        .type_knobs = {"in_type", "out_type"},
                                                        .factors = DataType::kBf16});
  return instance;
}

const ConvTemplate& GroupedTemplate() {
  static const X86Template<grouped::Schedule> instance({.name = "grouped",
                                                        .supports = grouped::Supports,
                                                        .space = grouped::Space,
                                                        .preset = grouped::Default,
                                                        .read = grouped::ReadSchedule});
  return instance;
}

}  // namespace tilesmith
