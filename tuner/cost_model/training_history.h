// What was measured before, as a cost model learns from it: other tasks of this network, other templates,
// earlier logs, other machines.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tuner/cost_model/cost_model.h"
#include "tuner/records/record.h"

namespace tilesmith {

// Thread-compatible: asking for a model counts as a change.
class TrainingHistory {
 public:
  // Scores are relative to the best of the same workload, conditions and machine. A config entered again
  // replaces its row. Records of unknown templates, of configs that are no longer valid, and of failures that
  // say nothing of the config are passed over.
  void Add(const Record& record);
  // What was fast elsewhere, without what was slow: FastestConfigs knows it, models learn nothing from it.
  // Its config need not be valid any more.
  void AddExample(const Record& record);
  size_t size() const { return rows_; }  // of what was added, examples not counted

  // A model from a file, which Model then returns for its objective instead of training one.
  void Start(CostModel model);
  // Trained on all that was added; trained again when that has grown by half. Null while there is too little
  // to learn from.
  std::shared_ptr<const CostModel> Model(Objective objective) const;
  // The template's fastest config in each task, most similar tasks first, n at most; then as many of tasks
  // that are examples; no two alike: what to try first on `workload`. Similar is what differs by small
  // factors in channels, positions, kernel and strides.
  std::vector<Config> FastestConfigs(const ConvTemplate& conv_template, const ConvWorkload& workload,
                                     size_t n) const;
  // All of it as a training set of `schema`, its groups the tasks.
  TrainingSet ToTrainingSet(const FeatureSchema& schema) const;
  // Every knob of every record, sorted.
  std::vector<std::string> Knobs() const;

 private:
  struct Row {
    const ConvTemplate* conv_template = nullptr;
    Config config;
    double seconds = 0;  // 0: failed
  };
  struct Task {
    ConvWorkload workload;
    Target cpu;
    MeasureConditions conditions;
    std::map<const ConvTemplate*, ConfigSpace> spaces;
    std::vector<Row> rows;
    std::map<std::string, size_t> by_config;
    // For each template the rows that worked: seconds and which row, the fastest first.
    std::map<const ConvTemplate*, std::set<std::pair<double, size_t>>> by_seconds;
  };
  struct Trained {
    size_t rows = 0;
    std::shared_ptr<const CostModel> model;
  };
  struct Example {  // the fastest of a task
    ConvWorkload workload;
    Config config;
    double seconds = 0;
  };
  std::map<std::string, Task> tasks_;                                       // by TaskKey
  std::map<const ConvTemplate*, std::map<std::string, Example>> examples_;  // likewise
  size_t rows_ = 0;
  std::map<Objective, std::shared_ptr<const CostModel>> started_;
  mutable std::map<Objective, Trained> trained_;
};

// A model of all records, for `tilesmith cost-model` and tests. Throws Error(kUsage) when there is nothing to
// learn from.
CostModel TrainCostModel(const TrainingHistory& history, Objective objective);

}  // namespace tilesmith
