// A tuner of a task is asked a TuneRequest and gives a TuneResult.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tuner/measure/measurer.h"
#include "tuner/records/accuracy.h"

namespace tilesmith {

class TrainingHistory;

struct TuneOptions {
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
  Target cpu;
  // All support the workload; the most general comes first, as in TemplatesToTune.
  std::vector<const ConvTemplate*> templates;
  MeasureConditions conditions;
  SamplingPlan sampling;
  TrialLimits limits;  // memory_bytes 0: a generous limit that follows from the workload
  TuneOptions options;
  // Records of earlier runs. Those of this workload, machine and conditions are not measured again, and teach
  // the searcher.
  std::vector<Record> resume;
  // What was fast elsewhere: those schedules that fit are tried before any other, and are trials as others.
  std::vector<Record> suggestions = {};
  // Knowledge that is shared among tasks: searchers read it, each record of a finished turn is added. May be
  // null.
  std::shared_ptr<TrainingHistory> history = nullptr;
  // Configs beyond them are measured and logged, but never win. Forbidden templates are left out.
  AccuracyLimits accuracy;
};

struct CurvePoint {
  int trials = 0;  // after so many of the task
  double best_seconds = 0;
};

struct TuneResult {
  std::vector<Record> records;  // what is now known of every config tried or resumed, one each
  std::optional<Record> best;
  std::map<TrialStatus, int> failures;
  int trials_measured = 0;    // by this call, re-timing not counted
  int layout_trials = 0;      // of them, those spent on other layouts on purpose
  double search_seconds = 0;  // what trials_measured took
};

// The registered templates of this type (ConvTemplatesFor) that support the workload and are not forbidden;
// the portable one only where no other does.
std::vector<const ConvTemplate*> TemplatesToTune(const ConvWorkload& workload, const Target& cpu,
                                                 const AccuracyLimits& accuracy = {},
                                                 DataType type = DataType::kF32);

// Throws Error(kUsage) naming an option whose value is less.
void RequireAtLeast(double least, const char* what, double value);

}  // namespace tilesmith
