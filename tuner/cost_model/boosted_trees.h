// Gradient-boosted regression trees: XGBoost behind plain values.
// Source: T. Chen, C. Guestrin, "XGBoost: A Scalable Tree Boosting System", KDD 2016.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tuner/cost_model/feature_schema.h"

namespace tilesmith {

enum class Objective {
  kRegression,    // squared error of the scores
  kPairwiseRank,  // which of two rows of a group scores higher
};
std::string_view ObjectiveName(Objective objective);  // "regression", "pairwise-rank"
Objective ParseObjective(std::string_view text);      // throws Error(kUsage) naming the known

struct TrainingSet {
  FeatureMatrix features;
  std::vector<float> scores;          // one a row, higher is better
  std::vector<uint32_t> group_sizes;  // rows of a group follow each other and are comparable
  std::vector<float> base;            // where boosting starts, one a row; empty: from a constant
};

struct TrainingOptions {
  Objective objective = Objective::kRegression;
  int rounds = 40;
  int depth = 6;
  double learning_rate = 0.25;
  uint64_t seed = 1;
};

// XGBoost is loaded when it is first needed. Throws Error(kEnvironment), as training and Load do, naming the
// package that has it, where it is not installed. Thread-safe.
void RequireXgboost();
// The library's version: "1.7.2", or "not installed". Thread-safe.
std::string XgboostVersion();

// Immutable once trained. Thread-compatible: predicting counts as a change.
class BoostedTrees {
 public:
  // Precondition: at least one row. Deterministic: one thread, seeded.
  static BoostedTrees Train(const TrainingSet& data, const TrainingOptions& options);
  // What Save returned. Throws Error(kUsage) when it is not a model.
  static BoostedTrees Load(const std::string& bytes);

  // One prediction a row; `base` as in training.
  std::vector<float> Predict(const FeatureMatrix& features, std::span<const float> base = {}) const;
  // XGBoost's JSON model format.
  std::string Save() const;
  // Total gain of the splits on each column; 0 for unused columns.
  std::vector<double> Importance(size_t columns) const;

 private:
  using Handle = std::shared_ptr<void>;
  explicit BoostedTrees(Handle booster) : booster_(std::move(booster)) {}
  Handle booster_;
};

}  // namespace tilesmith
