// Measuring every valid config of a space, once, so that searchers can be replayed on it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tuner/measure/measurer.h"
#include "tuner/simulation/measured_space.h"

namespace tilesmith {

// Knob name to the values it is restricted to. The text form is "ic_block=16 rows=4,8".
using KnobRestrictions = std::map<std::string, std::vector<int64_t>>;
// Throws Error(kUsage) quoting what cannot be read.
KnobRestrictions ParseRestrictions(const std::string& text);
// The space's knobs with the restricted ones cut down, in the order of the space's values. Throws
// Error(kUsage) naming an unknown knob, or a value the knob does not have.
std::vector<Knob> Restrict(const ConfigSpace& space, const KnobRestrictions& restrictions);

struct ExhaustiveRequest {
  MeasureSession session;
  const ConvTemplate* conv_template = nullptr;  // supports the session's workload
  std::vector<Knob> knobs;                      // see Restrict
  std::vector<Record> known = {};               // trials of an earlier run, which this one goes on with
};

struct ExhaustiveSinks {
  std::function<void(size_t done, size_t of)> on_progress = {};  // between trials
  std::function<void(const Record&)> on_record = {};             // of every trial, as soon as it is done
  std::function<bool()> should_stop = {};                        // asked before every trial
};

// "" or why the record is of no trial of the request's.
std::string WhyForeign(const ExhaustiveRequest& request, const Record& record);

// Every valid config in a random order, so that a drift of the machine hits no corner of the space more than
// another; then those near the best twice more, all samples of a config counting together, since among
// thousands the fastest would otherwise be the luckiest. Known trials count as if they were this run's.
// Throws Error(kInterrupted) when stopped, with the trials in flight done, and what the measurer throws.
// Precondition: no known record is foreign.
MeasuredSpace MeasureExhaustively(const ExhaustiveRequest& request, Measurer& measurer,
                                  const ExhaustiveSinks& sinks);

}  // namespace tilesmith
