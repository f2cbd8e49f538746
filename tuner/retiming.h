// The end of tuning a task: what looks best is measured again, side by side.
//
// The fastest of hundreds of noisy timings is fast partly by luck, and a machine drifts in the minutes a
// search takes. So the contenders are timed again round robin, which lets a drift hit all alike. When a
// config that was not among them then looks best (because the rest turned out slower than they seemed), it is
// timed again in turn, until the best is one that was.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tuner/measure/measurer.h"
#include "tuner/trial_book.h"

namespace tilesmith {

struct Retimed {
  Record record;  // as it was known
  TrialResult result;
};

// The configs to time again: those of `book` that are best over all and best of each pair, without those that
// already were by this run (`done`, by ScheduleText).
std::vector<Record> Contenders(const ConvWorkload& workload, const TrialBook& book, int top,
                               const std::set<std::string>& done);

// Times them round robin. `stopped` (not empty) is asked before every trial; the rounds completed until then
// count. A result without samples was never measured.
std::vector<Retimed> TimeAgain(const std::vector<Record>& contenders, int rounds, Measurer& measurer,
                               const std::function<bool()>& stopped);

}  // namespace tilesmith
