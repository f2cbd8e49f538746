// Measuring: what a trial is, what comes back, and the interface a simulation can stand behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "layouts/base/target.h"
#include "layouts/measure/sampling.h"
#include "templates/base/conv_template.h"
#include "tuner/records/record.h"

namespace tilesmith {

struct TrialLimits {
  double build_seconds = 10;
  double run_seconds = 10;   // for all runs of a trial together
  int64_t memory_bytes = 0;  // address space of the worker; 0: no limit
};

// All trials of a workload share these. Input data, weights and reference answers follow from the seed.
struct MeasureSession {
  ConvWorkload workload;
  Target cpu;  // of the machine asked for, as templates see it: an ISA below the machine's is honoured
  MeasureConditions conditions;
  SamplingPlan sampling;
  TrialLimits limits;
  uint64_t seed = 1;
};

struct TrialRequest {
  std::string template_name;
  Config config;
  // A config whose first run takes longer is hopeless: its trial ends there, early_stopped.
  double stop_above_seconds = std::numeric_limits<double>::infinity();
};

struct TrialResult {
  TrialStatus status = TrialStatus::kOk;
  std::string detail;                          // of a failure, in words
  std::vector<double> sample_seconds;          // in the order taken
  double seconds = 0;                          // Estimate(sample_seconds); 0 unless ok
  std::optional<double> error = std::nullopt;  // as in Record
  bool early_stopped = false;
  double build_seconds = 0;
  Target target;            // what it was measured on, by the word of who measured it
  std::string worker = {};  // who that was, where there are several
};

// A trial in flight.
using Ticket = uint64_t;

// A queue of trials. One thread at a time.
class Measurer {
 public:
  virtual ~Measurer() = default;
  // From now on trials are of this workload under these conditions; those in flight are forgotten. This and
  // the functions below throw Error(kEnvironment) when measuring is impossible: no worker can be started, or
  // it is another machine than the session's. Failures of a config are statuses of its result.
  virtual void Begin(const MeasureSession& session) = 0;
  // How many trials may be in flight, at least 1.
  virtual int Capacity() const { return 1; }
  // Preconditions: Begin was called; fewer than Capacity() are in flight.
  virtual Ticket Submit(const TrialRequest& request) = 0;
  // These will be submitted next: what can be built ahead of measuring, on all cores, is built now. Costs
  // nothing where building does not wait for anything. Preconditions: Begin was called; none is in flight.
  virtual void Prepare(std::span<const TrialRequest> /*requests*/) {}
  // Waits for a trial to be done, whichever is first. Precondition: one is in flight.
  virtual std::pair<Ticket, TrialResult> Next() = 0;
  // From true to false, trials are to be compared with each other: where there are several machines, one
  // takes them all, unless it is lost. Precondition: none is in flight.
  virtual void KeepTogether(bool /*together*/) {}
};

// The record that a trial leaves in a tuning log, as of now. Who chose the config, and what for, is the
// caller's to say.
Record TrialRecord(const MeasureSession& session, const ConvTemplate& conv_template, const Config& config,
                   const TrialResult& result);

// Many trials through a measurer, which is kept as busy as it can be.
//
// Keeps Measurer::Capacity trials in flight: submits what `next` gives and hands each result to `done` with
// the number of its request, 0 for the first. Results come in any order. `next` is asked when there is room
// and again after each result, so it may have nothing now and something later; it is over when it has nothing
// and nothing is in flight. With a capacity of 1 the two take turns. Throws what the measurer and the two
// throw; trials in flight are then lost.
void RunTrials(Measurer& measurer, const std::function<std::optional<TrialRequest>()>& next,
               const std::function<void(size_t index, TrialResult result)>& done);

// Several trials of one config counted as one.
//
// Returns what `again` says, with the samples of both and, if it worked, the estimate of them all.
TrialResult Pooled(const TrialResult& before, TrialResult again);

// Measures every request `rounds` times, round robin on one machine, so that one that drifts meets all alike;
// where it is lost and another goes on, all begin again there. A request that failed is not tried again.
// `stopped` (not empty) is asked before every trial; the rounds completed until then count. A result without
// samples was never measured. Throws what the measurer throws.
std::vector<TrialResult> MeasureInTurns(std::span<const TrialRequest> requests, int rounds,
                                        Measurer& measurer, const std::function<bool()>& stopped);

}  // namespace tilesmith
