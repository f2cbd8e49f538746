// How much accuracy may be traded for speed: limits a user sets, checked against what was measured.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "tuner/records/record.h"

namespace tilesmith {

struct AccuracyLimits {
  double max_error = std::numeric_limits<double>::infinity();  // of Record::error
  std::vector<std::string> forbidden_templates;
  bool operator==(const AccuracyLimits&) const = default;
};

// A record without a measured error is accepted only where any error is.
bool Accepts(const AccuracyLimits& limits, const Record& record);

// Those accepted, and all failures: a config that crashed or was wrong once is out, whatever its error
// before.
std::vector<Record> AcceptedRecords(const AccuracyLimits& limits, const std::vector<Record>& records);

// Throws Error(kUsage) when a forbidden template does not exist or max_error is not positive.
void CheckAccuracyLimits(const AccuracyLimits& limits);

}  // namespace tilesmith
