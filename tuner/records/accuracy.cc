#include "tuner/records/accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "layouts/base/error.h"
#include "layouts/base/settings.h"

namespace tilesmith {

bool Accepts(const AccuracyLimits& limits, const Record& record) {
  const std::vector<std::string>& forbidden = limits.forbidden_templates;
  if (std::find(forbidden.begin(), forbidden.end(), record.template_name) != forbidden.end()) return false;
  return std::isinf(limits.max_error) || (record.error && *record.error <= limits.max_error);
}

std::vector<Record> AcceptedRecords(const AccuracyLimits& limits, const std::vector<Record>& records) {
  std::vector<Record> accepted;
  std::copy_if(records.begin(), records.end(), std::back_inserter(accepted), [&](const Record& record) {
    return record.status != TrialStatus::kOk || Accepts(limits, record);
  });
  return accepted;
}

void CheckAccuracyLimits(const AccuracyLimits& limits) {
  for (const std::string& name : limits.forbidden_templates) FindConvTemplate(name);
  if (!(limits.max_error > 0)) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} must be above 0, got {}", settings::kMaxError, limits.max_error));
  }
}

}  // namespace tilesmith
