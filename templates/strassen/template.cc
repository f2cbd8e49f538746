#include "templates/strassen/template.h"

#include "templates/base/schedule_template.h"
#include "templates/strassen/config.h"
#include "templates/strassen/schedule.h"

namespace tilesmith {
namespace strassen {
namespace {

// In data without structure, operands have the variance of as many elements as they add up. C12 adds P1
// (1), P6 (3 * 3), P5 (2 * 2) and P3 (4 * 1), where a plain sum of as many terms has 2: 3 times larger,
// squared; C21 and C22 likewise. What that is of the bound for plain sums: see the Winograd template.
double ErrorFactor(const ConvWorkload& w, const Config&) {
  constexpr double kAmplification = 3;
  return 1 + 4 * kAmplification / static_cast<double>(w.ic);
}

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return MakeSchedule(w, ReadConfig(config, cpu), cpu.vector_floats());
}

}  // namespace
}  // namespace strassen

const ConvTemplate& StrassenTemplate() {
  static const X86Template<strassen::Schedule> instance({.name = "strassen",
                                                         .supports = strassen::Supports,
                                                         .preset_decides = true,
                                                         .space = strassen::Space,
                                                         .preset = strassen::Default,
                                                         .read = strassen::ReadSchedule,
                                                         .error_factor = strassen::ErrorFactor});
  return instance;
}

}  // namespace tilesmith
