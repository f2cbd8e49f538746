// Measuring recorded configs again: do their times and answers still hold, or what are they on this machine?
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tuner/measure/measurer.h"
#include "tuner/records/record_groups.h"

namespace tilesmith {

// The `top` fastest configs that stand of each workload, machine and conditions. Precondition: top >= 1.
std::vector<Record> FastestRecords(std::span<const Record> records, int64_t top);

struct VerifyRequest {
  Target cpu;  // this machine
  // Records of other machines too, with all of this one's instructions, `threads` threads and, where the
  // config is not valid here, the valid one nearest to it.
  bool retarget = false;
  int threads = 1;
  int rounds = 3;  // each config this often, in turn with the others of its workload
  // What took longer than the record by more than this is measured again when all else is done, and the
  // better time counts: a busy machine only ever adds time.
  double tolerance = 0.1;
  SamplingPlan sampling = {};
  TrialLimits limits = {};
  uint64_t seed = 1;  // of the data
};

struct Verification {
  Record old;
  std::string skipped;    // why nothing was measured; "" if it was
  Record now;             // measured by this machine; its time, but no origin
  bool measured = false;  // what `now` says
  // Whether the two times are of one machine, config and kind of measurement.
  bool comparable() const;
};

struct VerifySinks {
  std::function<void(size_t done, size_t total)> on_progress = {};  // between workloads
  // Each new one, at once; a second one of the same config takes the first one's place.
  std::function<void(const Record&)> on_record = {};
  std::function<bool()> should_stop = {};
};

// One for each record, in their order; those that should_stop prevented are skipped with that reason. Throws
// what the measurer throws.
std::vector<Verification> VerifyRecords(const std::vector<Record>& records, const VerifyRequest& request,
                                        Measurer& measurer, const VerifySinks& sinks);

}  // namespace tilesmith
