// A cost model predicts how good configs are without running them: trees over the features of
// feature_schema.h. Only the order of predictions, and their differences within a task, mean something.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "tuner/cost_model/boosted_trees.h"
#include "tuner/cost_model/feature_schema.h"

namespace tilesmith {

// What it learns of a config: its throughput relative to the best known of the task, cubed, so that the
// differences among the good weigh more than those among the bad. 0 for a config that failed (seconds 0).
inline float ScoreOf(double seconds, double best_seconds) {
  return seconds > 0 ? static_cast<float>(std::pow(best_seconds / seconds, 3)) : 0.0F;
}

class CostModel {
 public:
  CostModel(FeatureSchema schema, Objective objective, BoostedTrees trees)
      : schema_(std::move(schema)), objective_(objective), trees_(std::move(trees)) {}

  const FeatureSchema& schema() const { return schema_; }
  Objective objective() const { return objective_; }
  // `features` are of schema().
  std::vector<float> Predict(const FeatureMatrix& features) const { return trees_.Predict(features); }

  struct ColumnGain {
    std::string column;
    double share = 0;  // of the total gain of all splits
  };
  // Largest first; columns never split on are left out.
  std::vector<ColumnGain> Importance() const;

 private:
  friend void SaveCostModel(const CostModel& model, const std::string& path);
  FeatureSchema schema_;
  Objective objective_;
  BoostedTrees trees_;
};

// One JSON file; written to a temporary and renamed. Throws Error(kEnvironment) naming the path.
void SaveCostModel(const CostModel& model, const std::string& path);
// Throws Error(kEnvironment) when the file cannot be read, and Error(kUsage) naming the path when it is not a
// cost model, or one whose features have another version than this tilesmith's (both versions are named).
CostModel LoadCostModel(const std::string& path);

// How good a cost model's order is.
//
// Share of the pairs of different `truth` that `predicted` orders alike; ties of `predicted` count half. 0.5
// is a guess, 1 perfect. 0.5 when no two differ. Precondition: equal lengths.
double PairAccuracy(std::span<const float> predicted, std::span<const float> truth);

// The best truth among the `n` predicted best, against the best truth of all: 1 is perfect. Preconditions:
// equal lengths, not empty, n >= 1, the best truth is positive.
double RecallOfBest(std::span<const float> predicted, std::span<const float> truth, size_t n);

}  // namespace tilesmith
