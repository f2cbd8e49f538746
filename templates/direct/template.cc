#include "templates/direct/template.h"

#include "templates/base/schedule_template.h"
#include "templates/direct/config.h"
#include "templates/direct/schedule.h"

namespace tilesmith {
namespace direct {
namespace {

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return MakeSchedule(w, ReadConfig(config, cpu), cpu.vector_floats());
}

}  // namespace
}  // namespace direct

const ConvTemplate& DirectTemplate() {
  static const X86Template<direct::Schedule> instance({.name = "direct",
                                                       .fuses = true,
                                                       .supports = direct::Supports<direct::Factors::kF32>,
                                                       .space = direct::Space<direct::Factors::kF32>,
                                                       .preset = direct::Default<direct::Factors::kF32>,
                                                       .rows_preset = direct::RowsDefault,
                                                       .read = direct::ReadSchedule,
                                                       .cycles = direct::CyclesOf});
  return instance;
}

const ConvTemplate& DirectBf16Template() {
  static const X86Template<direct::Schedule> instance({.name = "direct_bf16",
                                                       .fuses = true,
                                                       .supports = direct::Supports<direct::Factors::kBf16>,
                                                       .space = direct::Space<direct::Factors::kBf16>,
                                                       .preset = direct::Default<direct::Factors::kBf16>,
                                                       .read = direct::ReadSchedule,
                                                       .type_knobs = {"in_type", "out_type"},
                                                       .factors = DataType::kBf16,
                                                       .cycles = direct::CyclesOf});
  return instance;
}

}  // namespace tilesmith
