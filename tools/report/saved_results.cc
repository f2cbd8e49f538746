#include "tools/report/saved_results.h"

#include "tuner/records/json_fields.h"

namespace tilesmith {

namespace {

// A text, or a config's knobs, which are an object of integers.
nlohmann::ordered_json TextOrKnobs(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_object()) return TextOrNull(object, name);
  nlohmann::ordered_json knobs = nlohmann::ordered_json::object();
  for (const auto& [knob, value] : found->items())
    if (value.is_number_integer()) knobs[knob] = value;
  return knobs;
}

}  // namespace

void SavedResults::Add(const std::string& text, const std::string& source, const Plan& plan) {
  nlohmann::json json = ParseJson(text);
  if (!json.is_object() || !json.contains("command")) {
    throw Error(
        ErrorCode::kUsage,
        fmt::format("{}: not a JSON object as bench, graph-tune, optimize and run --json print one", source));
  }
  const auto hash = json.find("graph_hash");
  if (hash != json.end() && *hash != plan.graph_hash) {
    throw Error(ErrorCode::kUsage, fmt::format("{}: results of another network ({}) than the plan's ({})",
                                               source, JsonLine(*hash), plan.graph_hash));
  }
  const auto measured = json.find("plan_hash");
  if (measured != json.end() && *measured != PlanHash(plan)) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: measured with another plan ({}) than this one ({}): measure it with --plan",
                            source, JsonLine(*measured), PlanHash(plan)));
  }
  if (hash != json.end() && measured == json.end()) without_plan_.push_back(source);
  results_.push_back(std::move(json));
}

const nlohmann::json* SavedResults::Find(const std::string& name) const {
  for (const nlohmann::json& result : results_) {
    const auto found = result.find(name);
    if (found != result.end() && !found->is_null()) return &*found;
  }
  return nullptr;
}

bool SavedResults::Has(const std::string& name) const { return Find(name) != nullptr; }

std::optional<double> SavedResults::Number(const std::string& name) const {
  const nlohmann::json* value = Find(name);
  return value && value->is_number() ? std::optional(value->get<double>()) : std::nullopt;
}

std::string SavedResults::Text(const std::string& name) const {
  const nlohmann::json* value = Find(name);
  return value && value->is_string() ? value->get<std::string>() : "";
}

std::vector<double> SavedResults::Numbers(const std::string& name) const {
  std::vector<double> numbers;
  const nlohmann::json* value = Find(name);
  if (!value || !value->is_array()) return numbers;
  for (const nlohmann::json& number : *value)
    if (number.is_number()) numbers.push_back(number.get<double>());
  return numbers;
}

std::vector<nlohmann::ordered_json> SavedResults::Rows(const std::string& name,
                                                       std::initializer_list<const char*> texts,
                                                       std::initializer_list<const char*> numbers) const {
  std::vector<nlohmann::ordered_json> rows;
  const nlohmann::json* value = Find(name);
  if (!value || !value->is_array()) return rows;
  for (const nlohmann::json& object : *value) {
    if (!object.is_object()) continue;
    nlohmann::ordered_json row;
    for (const char* text : texts) row[text] = TextOrKnobs(object, text);
    for (const char* number : numbers) row[number] = NumberOrNull(object, number);
    rows.push_back(std::move(row));
  }
  return rows;
}

nlohmann::ordered_json SavedResults::Origins() const {
  nlohmann::ordered_json origins = nlohmann::ordered_json::array();
  for (const nlohmann::json& result : results_) {
    nlohmann::ordered_json origin;
    for (const char* name : {"command", "date", "machine", "version", "commit", "onednn", "weights"})
      if (result.contains(name)) origin[name] = TextOrNull(result, name);
    if (!origin.empty()) origins.push_back(std::move(origin));
  }
  return origins;
}

nlohmann::ordered_json NumberOrNull(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return nullptr;
  return *found;
}

nlohmann::ordered_json TextOrNull(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return nullptr;
  return *found;
}

}  // namespace tilesmith
