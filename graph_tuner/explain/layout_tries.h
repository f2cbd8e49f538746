// What a tuning log says about one convolution in one layout: was it tried, and how did that go.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tuner/records/accuracy.h"
#include "tuner/records/record.h"

namespace tilesmith {

// Records count that the graph tuner would look at: of this machine and thread count, with cold weights where
// any successful ones have them. A config has the layout when it reads or writes it.
struct LayoutTries {
  int64_t records = 0;                      // that count and have the layout, re-timings included
  int64_t trials = 0;                       // distinct configs of them
  std::map<TrialStatus, int64_t> failures;  // records by status, but ok
  int64_t inaccurate = 0;                   // successful ones beyond the accuracy limits
  std::optional<Record> best;               // the fastest candidate of a pair that has it
  int64_t ignored = 0;                      // that have the layout and do not count
  bool cold_weights = false;

  int64_t task_trials = 0;             // distinct configs in any layout
  int64_t pairs = 0;                   // of layouts, which tuning offers a trial each
  std::vector<std::string> templates;  // that tuning would try in this layout
};

// For whom the log is read.
struct LogReader {
  Target cpu;
  int threads = 1;
  AccuracyLimits accuracy;
};

// `records` are the log's. Deterministic.
LayoutTries FindLayoutTries(const ConvWorkload& workload, const Layout& layout,
                            const std::vector<Record>& records, const LogReader& reader);

// How many trials `tilesmith tune --resume` must be given to offer every pair of layouts one: those that have
// no record yet come first (tuner/layout_search.h).
int64_t TrialsToCoverLayouts(const LayoutTries& tries);

}  // namespace tilesmith
