#include "tuner/record.h"

#include "tuner/json_fields.h"

namespace tilesmith {
namespace {

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

LayoutPair LayoutsFromJson(const json& list) {
  if (!list.is_array() || list.size() != 2) {
    throw Error(ErrorCode::kUsage, "field \"layouts\" is not a list of two layouts");
  }
  return {Layout::Parse(JsonValue<std::string>(list[0], "layouts")),
          Layout::Parse(JsonValue<std::string>(list[1], "layouts"))};
}

std::vector<double> SamplesFromJson(const json& list) {
  if (!list.is_array()) throw Error(ErrorCode::kUsage, "field \"samples\" is not a list");
  std::vector<double> samples;
  samples.reserve(list.size());
  for (const json& sample : list) samples.push_back(JsonValue<double>(sample, "samples"));
  return samples;
}

void CheckFormat(const json& object) {
  const int format = JsonGet<int>(object, "tilesmith");
  if (format < 1 || format > kRecordFormat) {
    throw Error(ErrorCode::kUsage,
                fmt::format("record format {} (this version reads up to {})", format, kRecordFormat));
  }
}

std::string WhyNoCount(const char* field, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return "";
  return fmt::format("field \"{}\" is {} (allowed: {} to {})", field, value, least, most);
}

std::string WhyNoTarget(const Target& target) {
  constexpr int64_t kMostCacheBytes = int64_t{1} << 50;
  const struct {
    const char* field;
    int64_t value, least, most;
  } counts[] = {{"cores", target.cores, 1, kMostThreads},
                {"l1d_bytes", target.l1d_bytes, 0, kMostCacheBytes},
                {"l2_bytes", target.l2_bytes, 0, kMostCacheBytes},
                {"l3_bytes", target.l3_bytes, 0, kMostCacheBytes}};
  for (const auto& [field, value, least, most] : counts) {
    if (std::string why = WhyNoCount(field, value, least, most); !why.empty()) return why;
  }
  return "";
}

std::string WhyNoTiming(const Record& record) {
  if (record.status == TrialStatus::kOk && !(record.seconds > 0))
    return fmt::format("field \"seconds\" is {} in a record that is ok (allowed: > 0)", record.seconds);
  const auto why = [](const char* field, double seconds) {
    return fmt::format("field \"{}\" is {} (allowed: 0, and {:g} to {:g})", field, seconds, kLeastSeconds,
                       kMostSeconds);
  };
  if (!IsPlausibleTime(record.seconds)) return why("seconds", record.seconds);
  for (const double sample : record.sample_seconds) {
    if (!IsPlausibleTime(sample)) return why("samples", sample);
  }
  if (record.error && !(*record.error >= 0))
    return fmt::format("field \"error\" is {} (allowed: at least 0)", *record.error);
  return "";
}

void Check(const std::string& why) {
  if (!why.empty()) throw Error(ErrorCode::kUsage, why);
}

}  // namespace

std::string WhyImplausible(const Record& record) {
  if (std::string why = WhyNoTarget(record.target); !why.empty()) return why;
  if (std::string why = WhyNoCount("threads", record.conditions.threads, 1, kMostThreads); !why.empty())
    return why;
  if (record.task_trials < 0) return WhyNoCount("task_trials", record.task_trials, 0, INT32_MAX);
  return WhyNoTiming(record);
}

json ConditionsToJson(const MeasureConditions& conditions) {
  return {{"threads", conditions.threads},
          {"pinned", conditions.pinned},
          {"cold_weights", conditions.cold_weights}};
}

MeasureConditions ConditionsFromJson(const json& object) {
  const MeasureConditions conditions = {.threads = JsonGet<int>(object, "threads"),
                                        .pinned = JsonGet<bool>(object, "pinned"),
                                        .cold_weights = JsonGet<bool>(object, "cold_weights")};
  Check(WhyNoCount("threads", conditions.threads, 1, kMostThreads));
  return conditions;
}

json TargetToJson(const Target& target) {
  return {{"cpu", target.cpu_model},       {"isa", IsaName(target.isa)},  {"cores", target.cores},
          {"l1d_bytes", target.l1d_bytes}, {"l2_bytes", target.l2_bytes}, {"l3_bytes", target.l3_bytes},
          {"version", target.tool_version}};
}

Target TargetFromJson(const json& object) {
  Target target = {.cpu_model = JsonGet<std::string>(object, "cpu"),
                   .isa = ParseIsa(JsonGet<std::string>(object, "isa")),
                   .cores = JsonGet<int>(object, "cores"),
                   .l1d_bytes = JsonGet<int64_t>(object, "l1d_bytes"),
                   .l2_bytes = JsonGet<int64_t>(object, "l2_bytes"),
                   .l3_bytes = JsonGet<int64_t>(object, "l3_bytes"),
                   .tool_version = JsonGet<std::string>(object, "version")};
  Check(WhyNoTarget(target));
  return target;
}

json RecordToJson(const Record& record) {
  json object = {{"tilesmith", kRecordFormat},
                 {"target", TargetToJson(record.target)},
                 {"workload", WorkloadToString(record.workload)},
                 {"template", record.template_name},
                 {"config", ConfigToJson(record.config)},
                 {"layouts", {record.layouts.in.ToString(), record.layouts.out.ToString()}},
                 {"conditions", ConditionsToJson(record.conditions)},
                 {"status", TrialStatusName(record.status)},
                 {"samples", record.sample_seconds},
                 {"seconds", record.seconds},
                 {"statistic", record.statistic},
                 {"early_stopped", record.early_stopped},
                 {"tuner", record.tuner},
                 {"seed", record.seed},
                 {"time", record.time}};
  if (!record.detail.empty()) object["detail"] = record.detail;
  if (record.error) object["error"] = *record.error;
  if (!record.origin.empty()) object["origin"] = record.origin;
  if (!record.purpose.empty()) object["purpose"] = record.purpose;
  if (record.task_trials > 0) object["task_trials"] = record.task_trials;
  return object;
}

Record RecordFromJson(const json& object) {
  CheckFormat(object);
  Record record;
  record.target = TargetFromJson(JsonField(object, "target"));
  record.workload = ParseWorkload(JsonGet<std::string>(object, "workload"));
  record.template_name = JsonGet<std::string>(object, "template");
  record.config = ConfigFromJson(JsonField(object, "config"));
  record.layouts = LayoutsFromJson(JsonField(object, "layouts"));
  record.conditions = ConditionsFromJson(JsonField(object, "conditions"));
  record.status = ParseTrialStatus(JsonGet<std::string>(object, "status"));
  record.detail = JsonGetOr<std::string>(object, "detail", "");
  record.sample_seconds = SamplesFromJson(JsonField(object, "samples"));
  record.seconds = JsonGet<double>(object, "seconds");
  record.statistic = JsonGet<std::string>(object, "statistic");
  record.early_stopped = JsonGetOr<bool>(object, "early_stopped", false);
  if (object.contains("error")) record.error = JsonGet<double>(object, "error");
  record.purpose = JsonGetOr<std::string>(object, "purpose", "");
  record.task_trials = JsonGetOr<int>(object, "task_trials", 0);
  record.tuner = JsonGet<std::string>(object, "tuner");
  record.seed = JsonGet<uint64_t>(object, "seed");
  record.time = JsonGet<std::string>(object, "time");
  record.origin = JsonGetOr<std::string>(object, "origin", "");
  Check(WhyImplausible(record));
  return record;
}

}  // namespace tilesmith
