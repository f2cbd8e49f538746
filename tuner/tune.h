// Tuning one task: search, then coverage of the layouts a graph tuner may ask for, then re-timing.
//
// The loop owns measuring and logging; a Searcher only chooses. Every record reaches the sink as soon as it
// is known, so a killed process loses only the trial in flight.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tuner/accuracy.h"
#include "tuner/measure/measurer.h"

namespace tilesmith {

class TrainingHistory;

struct TuneOptions {
  int trials = 256;  // distinct configs in all, those known from `resume` and the coverage included
  double seconds_budget = std::numeric_limits<double>::infinity();  // for this call
  int batch = 16;
  uint64_t seed = 1;
  std::string searcher = "xgb";
  double early_stop_factor = 1.5;   // a first run this much slower than the best is hopeless
  double coverage_fraction = 0.33;  // of the trials, for layout pairs beside the best
  int retime_top = 12;              // configs measured again side by side at the end
  int retime_rounds = 3;            // 0: none
};

struct TuneRequest {
  ConvWorkload workload;
  CpuInfo cpu;
  // All support the workload; the most general comes first, as in TemplatesToTune.
  std::vector<const ConvTemplate*> templates;
  MeasureConditions conditions;
  SamplingPlan sampling;
  TrialLimits limits;  // memory_bytes 0: a generous limit that follows from the workload
  TuneOptions options;
  // Records of earlier runs. Those of this workload, machine and conditions are not measured again, and teach
  // the searcher.
  std::vector<Record> resume;
  // Knowledge that is shared among tasks: searchers read it, each record of a finished turn is added. May be
  // null.
  std::shared_ptr<TrainingHistory> history = nullptr;
  // Configs beyond them are measured and logged, but never win. Forbidden templates are left out.
  AccuracyLimits accuracy;
};

enum class TunePhase { kSearch, kLayouts, kRetime };
std::string_view TunePhaseName(TunePhase phase);  // "search", "layouts", "re-timing"

struct TuneProgress {
  TunePhase phase = TunePhase::kSearch;
  int trials_done = 0;
  int trials_planned = 0;
  double best_seconds = 0;  // 0 while nothing has worked
  double best_gflops = 0;   // GFLOP/s
  std::map<TrialStatus, int> failures;
  double elapsed_seconds = 0;
  double left_seconds = 0;  // estimated
};

// Called on the tuning thread and never while a sample is taken. Any may be empty.
struct TuneSinks {
  std::function<void(const Record&)> on_record = {};          // each new record, at once
  std::function<void(const TuneProgress&)> on_progress = {};  // between batches
  std::function<bool()> should_stop = {};                     // asked before every trial
};

struct CurvePoint {
  int trials = 0;  // after so many of the task
  double best_seconds = 0;
};

struct TuneResult {
  std::vector<Record> records;  // what is now known of every config tried or resumed, one each
  std::optional<Record> best;
  std::map<TrialStatus, int> failures;
  int trials_measured = 0;                      // by this call, re-timing not counted
  int layout_trials = 0;                        // of them, those spent on other layouts on purpose
  std::map<LayoutPair, int> trials_of_layouts;  // the same by pair
  std::vector<CurvePoint> curve;                // every improvement of the best
  double search_seconds = 0;                    // what trials_measured took
  bool interrupted = false;                     // should_stop said so
  bool out_of_time = false;                     // the budget cut a phase short
};

// Throws Error(kUsage) for senseless options and unknown searchers, Error(kNoCandidate) when no template is
// given, and whatever the measurer throws.
TuneResult TuneTask(const TuneRequest& request, Measurer& measurer, const TuneSinks& sinks);

// The registered templates that support the workload and are not forbidden; the portable one only where no
// other does.
std::vector<const ConvTemplate*> TemplatesToTune(const ConvWorkload& workload, const CpuInfo& cpu,
                                                 const AccuracyLimits& accuracy = {});

}  // namespace tilesmith
