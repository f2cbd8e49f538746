#include "tuner/cost_model/cost_model.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "layouts/base/stable_hash.h"
#include "layouts/base/text_file.h"
#include "tuner/records/json_fields.h"

namespace tilesmith {
namespace {

using nlohmann::json;

constexpr int kModelFormat = 2;

// XGBoost believes what a model says of its own trees, and one whose nodes point anywhere takes the process
// down: trees that are not those that were saved are not given to it.
std::string ChecksumOf(const json& trees) {
  StableHash hash;
  hash.Add(JsonLine(trees));
  return fmt::format("{:016x}", hash.value());
}

void CheckVersion(const json& object, const char* name, int ours) {
  const int theirs = JsonGet<int>(object, name);
  if (theirs == ours) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("{} is {}, this tilesmith has {}: train the model again from its "
                          "logs",
                          name, theirs, ours));
}

CostModel FromJson(const json& object) {
  CheckVersion(object, "tilesmith_cost_model", kModelFormat);
  CheckVersion(object, "feature_version", kFeatureVersion);
  CheckVersion(object, "schema_version", kSchemaVersion);
  const json& trees = JsonField(object, "trees");
  if (ChecksumOf(trees) != JsonGet<std::string>(object, "checksum"))
    throw Error(ErrorCode::kUsage, "the trees are not those that the checksum is of: the file is damaged");
  std::vector<std::string> knobs;
  for (const json& knob : JsonField(object, "knobs")) knobs.push_back(JsonValue<std::string>(knob, "knobs"));
  FeatureSchema schema(std::move(knobs));
  const auto columns = JsonGet<size_t>(object, "columns");
  if (columns != schema.size()) {
    throw Error(ErrorCode::kUsage, fmt::format("columns is {}, its knobs make {}", columns, schema.size()));
  }
  const Objective objective = ParseObjective(JsonGet<std::string>(object, "objective"));
  return {std::move(schema), objective, BoostedTrees::Load(JsonLine(trees))};
}

}  // namespace

std::vector<CostModel::ColumnGain> CostModel::Importance() const {
  const std::vector<std::string> names = schema_.Names();
  const std::vector<double> gains = trees_.Importance(names.size());
  const double total = std::accumulate(gains.begin(), gains.end(), 0.0);
  std::vector<ColumnGain> shares;
  for (size_t i = 0; i < names.size(); ++i) {
    if (gains[i] > 0) shares.push_back({names[i], gains[i] / total});
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const ColumnGain& a, const ColumnGain& b) { return a.share > b.share; });
  return shares;
}

void SaveCostModel(const CostModel& model, const std::string& path) {
  json trees = json::parse(model.trees_.Save());
  const json object = {{"tilesmith_cost_model", kModelFormat}, {"feature_version", kFeatureVersion},
                       {"schema_version", kSchemaVersion},     {"objective", ObjectiveName(model.objective_)},
                       {"knobs", model.schema_.knobs()},       {"columns", model.schema_.size()},
                       {"checksum", ChecksumOf(trees)},        {"trees", std::move(trees)}};
  WriteTextFile(path, JsonLine(object) + '\n');
}

CostModel LoadCostModel(const std::string& path) {
  const json object = ParseJson(ReadTextFile(path));
  if (object.is_discarded()) throw Error(ErrorCode::kUsage, fmt::format("{}: not a cost model", path));
  try {
    return FromJson(object);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
}

double PairAccuracy(std::span<const float> predicted, std::span<const float> truth) {
  int64_t pairs = 0;
  double right = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    for (size_t j = i + 1; j < truth.size(); ++j) {
      if (truth[i] == truth[j]) continue;
      ++pairs;
      if (predicted[i] == predicted[j]) {
        right += 0.5;
      } else if ((predicted[i] > predicted[j]) == (truth[i] > truth[j])) {
        right += 1;
      }
    }
  }
  return pairs == 0 ? 0.5 : right / static_cast<double>(pairs);
}

double RecallOfBest(std::span<const float> predicted, std::span<const float> truth, size_t n) {
  std::vector<size_t> order(predicted.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return predicted[a] > predicted[b]; });
  float best = 0;
  for (size_t i = 0; i < std::min(n, order.size()); ++i) best = std::max(best, truth[order[i]]);
  return best / *std::max_element(truth.begin(), truth.end());
}

}  // namespace tilesmith
