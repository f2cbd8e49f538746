#include "tuner/records/json_fields.h"
#include "tuner/records/log.h"
#include "tuner/records/record.h"
#include "tuner/records/record_fields.h"

namespace tilesmith {
namespace {

using nlohmann::json;

// One pair of functions for each type of member.
template <typename T>
json ValueToJson(const T& value) {
  return value;
}
json ValueToJson(Isa isa) { return IsaName(isa); }
json ValueToJson(TrialStatus status) { return TrialStatusName(status); }
json ValueToJson(const ConvWorkload& workload) { return WorkloadToString(workload); }
json ValueToJson(const Config& config) { return ConfigToJson(config); }
json ValueToJson(const LayoutPair& layouts) { return LayoutsToJson(layouts); }
json ValueToJson(const Target& target) { return TargetToJson(target); }
json ValueToJson(const MeasureConditions& conditions) { return ConditionsToJson(conditions); }
json ValueToJson(const std::optional<double>& value) { return value.value(); }

template <typename T>
void ValueFromJson(const json& value, const char* name, T& member) {
  member = JsonValue<T>(value, name);
}
void ValueFromJson(const json& value, const char* name, Isa& isa) {
  isa = ParseIsa(JsonValue<std::string>(value, name));
}
void ValueFromJson(const json& value, const char* name, TrialStatus& status) {
  status = ParseTrialStatus(JsonValue<std::string>(value, name));
}
void ValueFromJson(const json& value, const char* name, ConvWorkload& workload) {
  workload = ParseWorkload(JsonValue<std::string>(value, name));
}
void ValueFromJson(const json& value, const char* /*name*/, Config& config) {
  config = ConfigFromJson(value);
}
void ValueFromJson(const json& value, const char* /*name*/, LayoutPair& layouts) {
  layouts = LayoutsFromJson(value);
}
void ValueFromJson(const json& value, const char* /*name*/, Target& target) {
  target = TargetFromJson(value);
}
void ValueFromJson(const json& value, const char* /*name*/, MeasureConditions& conditions) {
  conditions = ConditionsFromJson(value);
}
void ValueFromJson(const json& value, const char* name, std::optional<double>& member) {
  member = JsonValue<double>(value, name);
}
void ValueFromJson(const json& list, const char* name, std::vector<double>& values) {
  if (!list.is_array()) throw Error(ErrorCode::kUsage, fmt::format("field \"{}\" is not a list", name));
  values.reserve(list.size());
  for (const json& value : list) values.push_back(JsonValue<double>(value, name));
}

template <typename Struct, typename Value>
void Write(const Struct& from, const RecordField<Struct, Value>& field, json& object) {
  static const Struct kNew;
  const Value& value = from.*field.member;
  if (field.presence == Presence::kOptional && value == kNew.*field.member) return;
  object[field.name] = ValueToJson(value);
}
void Write(const Record& /*from*/, const FormatField& field, json& object) {
  object[field.name] = kRecordFormat;
}

template <typename Struct, typename Value>
void Read(const json& object, const RecordField<Struct, Value>& field, Struct& into) {
  if (field.presence == Presence::kRequired || object.contains(field.name))
    ValueFromJson(JsonField(object, field.name), field.name, into.*field.member);
}
void Read(const json& object, const FormatField& field, Record& /*into*/) {
  if (const std::string kind = FileKind(object); !object.contains(field.name) && !kind.empty())
    throw Error(ErrorCode::kUsage, fmt::format("{}, not a tuning log", kind));
  const int format = JsonGet<int>(object, field.name);
  if (format < 1 || format > kRecordFormat) {
    throw Error(ErrorCode::kUsage,
                fmt::format("record format {} (this version reads up to {})", format, kRecordFormat));
  }
}

template <typename Struct>
json ObjectOf(const Struct& from) {
  json object = json::object();
  ForEachField<Struct>([&](const auto& field) { Write(from, field, object); });
  return object;
}

template <typename Struct>
Struct StructOf(const json& object) {
  Struct into;
  ForEachField<Struct>([&](const auto& field) { Read(object, field, into); });
  if (const std::string why = WhyImplausible(into); !why.empty()) throw Error(ErrorCode::kUsage, why);
  return into;
}

}  // namespace

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
