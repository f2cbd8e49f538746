// Plain structs as JSON objects, both ways by the list of their members (record_fields.h). For .cc files
// only, as json_fields.h.
//
// A struct with a list of its own that has it visible may be a member of another; a WhyImplausible of it in
// namespace tilesmith is asked behind reading.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tuner/records/json_fields.h"
#include "tuner/records/log.h"
#include "tuner/records/record.h"
#include "tuner/records/record_fields.h"

namespace tilesmith::json_struct {

using nlohmann::json;

// One pair of functions for each type of member.
template <typename T>
json ValueToJson(const T& value) {
  return value;
}
inline json ValueToJson(Isa isa) { return IsaName(isa); }
inline json ValueToJson(TrialStatus status) { return TrialStatusName(status); }
inline json ValueToJson(const ConvWorkload& workload) { return WorkloadToString(workload); }
inline json ValueToJson(const Config& config) { return ConfigToJson(config); }
inline json ValueToJson(const LayoutPair& layouts) { return LayoutsToJson(layouts); }
inline json ValueToJson(const Target& target) { return TargetToJson(target); }
inline json ValueToJson(const MeasureConditions& conditions) { return ConditionsToJson(conditions); }
template <typename T>
json ValueToJson(const std::optional<T>& value) {
  return value.value();
}

template <typename T>
void ValueFromJson(const json& value, const char* name, T& member) {
  member = JsonValue<T>(value, name);
}
inline void ValueFromJson(const json& value, const char* name, Isa& isa) {
  isa = ParseIsa(JsonValue<std::string>(value, name), kAllIsas);
}
inline void ValueFromJson(const json& value, const char* name, TrialStatus& status) {
  status = ParseTrialStatus(JsonValue<std::string>(value, name));
}
inline void ValueFromJson(const json& value, const char* name, ConvWorkload& workload) {
  workload = ParseWorkload(JsonValue<std::string>(value, name));
}
inline void ValueFromJson(const json& value, const char* /*name*/, Config& config) {
  config = ConfigFromJson(value);
}
inline void ValueFromJson(const json& value, const char* /*name*/, LayoutPair& layouts) {
  layouts = LayoutsFromJson(value);
}
inline void ValueFromJson(const json& value, const char* /*name*/, Target& target) {
  target = TargetFromJson(value);
}
inline void ValueFromJson(const json& value, const char* /*name*/, MeasureConditions& conditions) {
  conditions = ConditionsFromJson(value);
}
template <typename T>
void ValueFromJson(const json& value, const char* name, std::optional<T>& member) {
  member = JsonValue<T>(value, name);
}
template <typename T>
void ValueFromJson(const json& list, const char* name, std::vector<T>& values) {
  if (!list.is_array()) throw Error(ErrorCode::kUsage, fmt::format("field \"{}\" is not a list", name));
  values.reserve(list.size());
  for (const json& value : list) values.push_back(JsonValue<T>(value, name));
}

template <typename Struct, typename Value>
void Write(const Struct& from, const StructField<Struct, Value>& field, json& object) {
  static const Struct kNew;
  const Value& value = from.*field.member;
  if (field.presence == Presence::kOptional && value == kNew.*field.member) return;
  object[field.name] = ValueToJson(value);
}
inline void Write(const Record& /*from*/, const FormatField& field, json& object) {
  object[field.name] = kRecordFormat;
}

template <typename Struct, typename Value>
void Read(const json& object, const StructField<Struct, Value>& field, Struct& into) {
  if (field.presence == Presence::kRequired || object.contains(field.name))
    ValueFromJson(JsonField(object, field.name), field.name, into.*field.member);
}
inline void Read(const json& object, const FormatField& field, Record& /*into*/) {
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

// Throws Error(kUsage) naming the first field that is missing or wrong, or saying what is implausible.
template <typename Struct>
Struct StructOf(const json& object) {
  Struct into;
  ForEachField<Struct>([&](const auto& field) { Read(object, field, into); });
  if constexpr (requires { WhyImplausible(into); })
    if (const std::string why = WhyImplausible(into); !why.empty()) throw Error(ErrorCode::kUsage, why);
  return into;
}

}  // namespace tilesmith::json_struct
