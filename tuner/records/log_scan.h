// Reading logs line by line: what ReadLog and everything that must keep the lines' own text stand on.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "tuner/records/record.h"

namespace tilesmith {

struct LogLine {
  int64_t number = 0;     // from 1
  std::string_view text;  // as it is in the file, without its newline; valid during the visit
  std::string problem;    // why it holds no record; "" if it does
  Record record;          // the visitor may move it away
};

// Visits every line that is not blank, in the order of the file, on the calling thread, while the next ones
// are read and parsed on all cores. Memory is needed for a few MiB of lines at a time. Throws
// Error(kEnvironment) naming the path when the file cannot be opened or read, Error(kUsage) naming it when a
// line does not end for a GiB, and whatever the visitor throws.
void ScanLog(const std::string& path, const std::function<void(LogLine&)>& visit);

}  // namespace tilesmith
