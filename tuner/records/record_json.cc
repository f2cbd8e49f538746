#include "tuner/records/json_struct.h"

namespace tilesmith {

using json_struct::ObjectOf, json_struct::StructOf;
using nlohmann::json;

json ConfigToJson(const Config& config) {
  json object = json::object();
  for (const auto& [name, value] : config.knobs()) object[name] = value;
  return object;
}

Config ConfigFromJson(const json& object) {
  if (!object.is_object()) throw Error(ErrorCode::kUsage, "field \"config\" is not an object");
  Config config;
  for (const auto& [name, value] : object.items()) config.Set(name, JsonValue<int64_t>(value, name.c_str()));
  return config;
}

json LayoutsToJson(const LayoutPair& layouts) { return {layouts.in.ToString(), layouts.out.ToString()}; }

LayoutPair LayoutsFromJson(const json& list) {
  if (!list.is_array() || list.size() != 2) {
    throw Error(ErrorCode::kUsage, "field \"layouts\" is not a list of two layouts");
  }
  return {Layout::Parse(JsonValue<std::string>(list[0], "layouts")),
          Layout::Parse(JsonValue<std::string>(list[1], "layouts"))};
}

json ConditionsToJson(const MeasureConditions& conditions) { return ObjectOf(conditions); }
MeasureConditions ConditionsFromJson(const json& object) { return StructOf<MeasureConditions>(object); }
json TargetToJson(const Target& target) { return ObjectOf(target); }
Target TargetFromJson(const json& object) { return StructOf<Target>(object); }
json RecordToJson(const Record& record) { return ObjectOf(record); }
Record RecordFromJson(const json& object) { return StructOf<Record>(object); }

}  // namespace tilesmith
