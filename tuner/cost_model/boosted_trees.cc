#include "tuner/cost_model/boosted_trees.h"

#include <fmt/format.h>
#include <xgboost/c_api.h>

#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "layouts/base/shared_library.h"

namespace tilesmith {
namespace {

// Debian's, or the one of the Python package xgboost where the process has it loaded.
constexpr const char* kNames[] = {TILESMITH_XGBOOST, "libxgboost.so"};
constexpr SystemLibrary kXgboost = {"XGBoost", "which tuning learns with", kNames};

void* Library() {
  static void* const library = RequireLibrary(kXgboost);
  return library;
}

template <typename Function>
Function Find(const char* name) {
  Function function = nullptr;
  RequireFunction(Library(), kXgboost, name, function);
  return function;
}

// The library's function that its header declares.
#define TILESMITH_XGB(name) (Find<decltype(&(name))>(#name))

void Check(int status, const char* what) {
  TILESMITH_CHECK(status == 0, "XGBoost, {}: {}", what, TILESMITH_XGB(XGBGetLastError)());
}

using Matrix = std::shared_ptr<void>;

Matrix MakeMatrix(const FeatureMatrix& features, std::span<const float> base) {
  DMatrixHandle handle = nullptr;
  Check(TILESMITH_XGB(XGDMatrixCreateFromMat)(features.values.data(), features.rows(), features.columns,
                                              kMissingFeature, &handle),
        "making a matrix");
  Matrix matrix(handle, [](DMatrixHandle m) { TILESMITH_XGB(XGDMatrixFree)(m); });
  if (!base.empty()) {
    TILESMITH_CHECK(base.size() == features.rows(), "{} starting values for {} rows", base.size(),
                    features.rows());
    Check(TILESMITH_XGB(XGDMatrixSetFloatInfo)(handle, "base_margin", base.data(), base.size()),
          "setting a base");
  }
  return matrix;
}

void SetParameter(BoosterHandle booster, const char* name, const std::string& value) {
  Check(TILESMITH_XGB(XGBoosterSetParam)(booster, name, value.c_str()), name);
}

std::shared_ptr<void> MakeBooster(const Matrix& data) {
  BoosterHandle handle = nullptr;
  const DMatrixHandle cached[] = {data.get()};
  Check(TILESMITH_XGB(XGBoosterCreate)(cached, data ? 1 : 0, &handle), "making a booster");
  std::shared_ptr<void> booster(handle, [](BoosterHandle b) { TILESMITH_XGB(XGBoosterFree)(b); });
  SetParameter(handle, "verbosity", "0");
  SetParameter(handle, "nthread", "1");
  return booster;
}

// For each column. Knobs have fewer values than that; exact splits take twice as long and order no better.
constexpr int kBins = 64;

}  // namespace

std::string_view ObjectiveName(Objective objective) {
  return objective == Objective::kRegression ? "regression" : "pairwise-rank";
}

Objective ParseObjective(std::string_view text) {
  for (Objective objective : {Objective::kRegression, Objective::kPairwiseRank}) {
    if (ObjectiveName(objective) == text) return objective;
  }
  throw Error(ErrorCode::kUsage,
              fmt::format("unknown objective \"{}\" (known: regression, pairwise-rank)", text));
}

void RequireXgboost() { Library(); }

std::string XgboostVersion() {
  try {
    Library();
  } catch (const Error&) {
    return "not installed";
  }
  int major = 0, minor = 0, patch = 0;
  TILESMITH_XGB(XGBoostVersion)(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

BoostedTrees BoostedTrees::Train(const TrainingSet& data, const TrainingOptions& options) {
  TILESMITH_CHECK(!data.scores.empty() && data.scores.size() == data.features.rows(), "{} scores for {} rows",
                  data.scores.size(), data.features.rows());
  const Matrix matrix = MakeMatrix(data.features, data.base);
  Check(TILESMITH_XGB(XGDMatrixSetFloatInfo)(matrix.get(), "label", data.scores.data(), data.scores.size()),
        "setting labels");
  const bool ranks = options.objective == Objective::kPairwiseRank;
  if (ranks && !data.group_sizes.empty()) {
    Check(TILESMITH_XGB(XGDMatrixSetUIntInfo)(matrix.get(), "group", data.group_sizes.data(),
                                              data.group_sizes.size()),
          "setting groups");
  }
  const std::shared_ptr<void> booster = MakeBooster(matrix);
  SetParameter(booster.get(), "objective", ranks ? "rank:pairwise" : "reg:squarederror");
  SetParameter(booster.get(), "tree_method", "hist");
  SetParameter(booster.get(), "max_bin", std::to_string(kBins));
  SetParameter(booster.get(), "max_depth", std::to_string(options.depth));
  SetParameter(booster.get(), "eta", std::to_string(options.learning_rate));
  SetParameter(booster.get(), "seed", std::to_string(options.seed & 0x7fffffff));
  for (int round = 0; round < options.rounds; ++round) {
    Check(TILESMITH_XGB(XGBoosterUpdateOneIter)(booster.get(), round, matrix.get()), "training");
  }
  return BoostedTrees(booster);
}

BoostedTrees BoostedTrees::Load(const std::string& bytes) {
  std::shared_ptr<void> booster = MakeBooster(nullptr);
  if (TILESMITH_XGB(XGBoosterLoadModelFromBuffer)(booster.get(), bytes.data(), bytes.size()) != 0) {
    throw Error(ErrorCode::kUsage, "the trees of the cost model cannot be read");
  }
  return BoostedTrees(std::move(booster));
}

std::string BoostedTrees::Save() const {
  bst_ulong size = 0;
  const char* bytes = nullptr;
  Check(TILESMITH_XGB(XGBoosterSaveModelToBuffer)(booster_.get(), R"({"format": "json"})", &size, &bytes),
        "saving");
  return {bytes, size};
}

std::vector<float> BoostedTrees::Predict(const FeatureMatrix& features, std::span<const float> base) const {
  if (features.rows() == 0) return {};
  constexpr int kMargin = 1;  // the trees' sum itself, so that it can be another model's base
  const Matrix matrix = MakeMatrix(features, base);
  bst_ulong size = 0;
  const float* values = nullptr;
  Check(TILESMITH_XGB(XGBoosterPredict)(booster_.get(), matrix.get(), kMargin, 0, 0, &size, &values),
        "predicting");
  return {values, values + size};
}

std::vector<double> BoostedTrees::Importance(size_t columns) const {
  bst_ulong features = 0, dimensions = 0;
  const char** names = nullptr;
  const bst_ulong* shape = nullptr;
  const float* gains = nullptr;
  Check(TILESMITH_XGB(XGBoosterFeatureScore)(booster_.get(), R"({"importance_type": "total_gain"})",
                                             &features, &names, &dimensions, &shape, &gains),
        "asking for importance");
  std::vector<double> importance(columns, 0.0);
  for (bst_ulong i = 0; i < features; ++i) {
    const size_t column = std::stoul(names[i] + 1);  // "f12"
    if (column < columns) importance[column] = gains[i];
  }
  return importance;
}

}  // namespace tilesmith
