#include "tuner/measure/protocol.h"

#include "tuner/records/json_struct.h"

namespace tilesmith {

using nlohmann::json;

template <>
inline constexpr auto kFields<TrialRequest> = std::tuple(
    StructField{"template", &TrialRequest::template_name}, StructField{"config", &TrialRequest::config},
    StructField{"stop_above_seconds", &TrialRequest::stop_above_seconds, Presence::kOptional});

template <>
inline constexpr auto kFields<TrialResult> = std::tuple(
    StructField{"status", &TrialResult::status}, StructField{"detail", &TrialResult::detail},
    StructField{"samples", &TrialResult::sample_seconds}, StructField{"seconds", &TrialResult::seconds},
    StructField{"early_stopped", &TrialResult::early_stopped},
    StructField{"build_seconds", &TrialResult::build_seconds},
    StructField{"error", &TrialResult::error, Presence::kOptional});

json SessionToJson(const MeasureSession& s) {
  return {{"workload", WorkloadToString(s.workload)},     {"target", TargetToJson(s.cpu)},
          {"conditions", ConditionsToJson(s.conditions)}, {"min_samples", s.sampling.min_samples},
          {"max_samples", s.sampling.max_samples},        {"sample_seconds", s.sampling.seconds},
          {"build_seconds", s.limits.build_seconds},      {"run_seconds", s.limits.run_seconds},
          {"memory_bytes", s.limits.memory_bytes},        {"seed", s.seed}};
}

MeasureSession SessionFromJson(const json& object) {
  MeasureSession s;
  s.workload = ParseWorkload(JsonGet<std::string>(object, "workload"));
  s.cpu = TargetFromJson(JsonField(object, "target"));
  s.conditions = ConditionsFromJson(JsonField(object, "conditions"));
  s.sampling = {.min_samples = JsonGet<int>(object, "min_samples"),
                .max_samples = JsonGet<int>(object, "max_samples"),
                .seconds = JsonGet<double>(object, "sample_seconds")};
  s.limits = {.build_seconds = JsonGet<double>(object, "build_seconds"),
              .run_seconds = JsonGet<double>(object, "run_seconds"),
              .memory_bytes = JsonGet<int64_t>(object, "memory_bytes")};
  s.seed = JsonGet<uint64_t>(object, "seed");
  return s;
}

json TrialToJson(const TrialRequest& request) { return json_struct::ObjectOf(request); }
TrialRequest TrialFromJson(const json& object) { return json_struct::StructOf<TrialRequest>(object); }
json ResultToJson(const TrialResult& result) { return json_struct::ObjectOf(result); }
TrialResult ResultFromJson(const json& object) {
  auto result = json_struct::StructOf<TrialResult>(object);
  Record record;
  record.status = result.status;
  record.sample_seconds = result.sample_seconds;
  record.seconds = result.seconds;
  record.error = result.error;
  if (const std::string why = WhyImplausible(record); !why.empty()) throw Error(ErrorCode::kUsage, why);
  return result;
}

namespace {

json ToJson(const ReadyMessage& message) { return {{"ready", TargetToJson(message.target)}}; }
json ToJson(const SessionMessage& message) { return {{"session", SessionToJson(message.session)}}; }
json ToJson(const AcceptedMessage& /*message*/) { return {{"accepted", true}}; }
json ToJson(const ErrorMessage& message) { return {{"error", message.why}}; }
json ToJson(const ComingMessage& message) {
  json trials = json::array();
  for (const TrialRequest& trial : message.trials) trials.push_back(TrialToJson(trial));
  return {{"coming", std::move(trials)}};
}
json ToJson(const TrialMessage& message) {
  return {{"trial", TrialToJson(message.trial)}, {"ticket", message.ticket}};
}
json ToJson(const RunningMessage& message) { return {{"running", message.ticket}}; }
json ToJson(const ResultMessage& message) {
  return {{"result", ResultToJson(message.result)}, {"ticket", message.ticket}};
}

}  // namespace

std::string MessageToText(const Message& message) {
  return JsonLine(std::visit([](const auto& one) { return ToJson(one); }, message));
}

Message MessageFromText(std::string_view text) {
  const json object = ParseJson(text);
  if (!object.is_object()) throw Error(ErrorCode::kUsage, "not a JSON object");
  const auto ticket = [&] { return JsonGet<Ticket>(object, "ticket"); };
  if (object.contains("ready")) return ReadyMessage{TargetFromJson(object["ready"])};
  if (object.contains("session")) return SessionMessage{SessionFromJson(object["session"])};
  if (object.contains("accepted")) return AcceptedMessage{};
  if (object.contains("error")) return ErrorMessage{JsonGet<std::string>(object, "error")};
  if (object.contains("coming")) {
    ComingMessage message;
    if (!object["coming"].is_array()) throw Error(ErrorCode::kUsage, "\"coming\" is no array");
    for (const json& trial : object["coming"]) message.trials.push_back(TrialFromJson(trial));
    return message;
  }
  if (object.contains("trial")) return TrialMessage{ticket(), TrialFromJson(object["trial"])};
  if (object.contains("running")) return RunningMessage{JsonGet<Ticket>(object, "running")};
  if (object.contains("result")) return ResultMessage{ticket(), ResultFromJson(object["result"])};
  throw Error(ErrorCode::kUsage, "no message that is known");
}

}  // namespace tilesmith
