#include "tuner/simulation/measured_space.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "layouts/base/text_file.h"
#include "tuner/json_fields.h"

namespace tilesmith {
namespace {

using nlohmann::json;

constexpr int kSpaceFormat = 1;
constexpr std::string_view kFailed = "failed";

json HeaderOf(const MeasuredSpace& measured) {
  json knobs = json::array();
  for (const Knob& knob : measured.knobs) knobs.push_back({{"name", knob.name}, {"values", knob.values}});
  return {{"tilesmith_space", kSpaceFormat},
          {"target", TargetToJson(measured.target)},
          {"workload", WorkloadToString(measured.workload)},
          {"template", measured.template_name},
          {"conditions", ConditionsToJson(measured.conditions)},
          {"knobs", std::move(knobs)}};
}

MeasuredSpace FromHeader(const json& header) {
  const int format = JsonGet<int>(header, "tilesmith_space");
  if (format != kSpaceFormat) {
    throw Error(ErrorCode::kUsage,
                fmt::format("space format {} (this version reads {})", format, kSpaceFormat));
  }
  MeasuredSpace measured;
  measured.target = TargetFromJson(JsonField(header, "target"));
  measured.workload = ParseWorkload(JsonGet<std::string>(header, "workload"));
  measured.template_name = JsonGet<std::string>(header, "template");
  measured.conditions = ConditionsFromJson(JsonField(header, "conditions"));
  for (const json& item : JsonField(header, "knobs")) {
    Knob knob;
    knob.name = JsonGet<std::string>(item, "name");
    for (const json& value : JsonField(item, "values")) {
      knob.values.push_back(JsonValue<int64_t>(value, "values"));
    }
    measured.knobs.push_back(std::move(knob));
  }
  return measured;
}

void ReadPoint(std::string_view line, MeasuredSpace& measured) {
  uint64_t index = 0;
  const char* const end = line.data() + line.size();
  const auto after_index = std::from_chars(line.data(), end, index);
  if (after_index.ec != std::errc() || after_index.ptr == end || *after_index.ptr != ' ') {
    throw Error(ErrorCode::kUsage, fmt::format("\"{}\" is not an index and a time", line));
  }
  const std::string_view rest(after_index.ptr + 1, end);
  if (rest == kFailed) {
    measured.seconds[index] = std::nullopt;
    return;
  }
  double microseconds = 0;
  const auto after_time = std::from_chars(rest.data(), end, microseconds);
  if (after_time.ec != std::errc() || after_time.ptr != end || !(microseconds > 0)) {
    throw Error(ErrorCode::kUsage, fmt::format("\"{}\" is not a time in microseconds", rest));
  }
  measured.seconds[index] = microseconds * 1e-6;
}

}  // namespace

ConfigSpace SpaceOf(const MeasuredSpace& measured) {
  // A space without validity first: it knows the index of a config.
  const ConfigSpace all(measured.knobs, nullptr);
  const auto* seconds = &measured.seconds;
  return {measured.knobs, [all, seconds](const Config& config) -> std::string {
            return seconds->contains(*all.IndexOf(config)) ? "" : "was not measured";
          }};
}

double TrueBest(const MeasuredSpace& measured) {
  std::optional<double> best;
  for (const auto& [index, seconds] : measured.seconds) {
    if (seconds && (!best || *seconds < *best)) best = seconds;
  }
  if (!best) throw Error(ErrorCode::kNoCandidate, "every config of the measured space failed");
  return *best;
}

std::vector<Record> RecordsOf(const MeasuredSpace& measured) {
  const ConfigSpace space(measured.knobs, nullptr);
  std::vector<Record> records;
  for (const auto& [index, seconds] : measured.seconds) {
    Record record;
    record.target = measured.target;
    record.workload = measured.workload;
    record.template_name = measured.template_name;
    record.config = space.At(index);
    record.conditions = measured.conditions;
    record.status = seconds ? TrialStatus::kOk : TrialStatus::kRunCrash;
    record.seconds = seconds.value_or(0);
    records.push_back(std::move(record));
  }
  return records;
}

void WriteMeasuredSpace(const MeasuredSpace& measured, const std::string& path) {
  std::string text = JsonLine(HeaderOf(measured)) + '\n';
  for (const auto& [index, seconds] : measured.seconds) {
    text +=
        seconds ? fmt::format("{} {:.2f}\n", index, *seconds * 1e6) : fmt::format("{} {}\n", index, kFailed);
  }
  WriteTextFile(path, text);
}

MeasuredSpace ReadMeasuredSpace(const std::string& path) {
  std::istringstream text(ReadTextFile(path));
  std::optional<MeasuredSpace> measured;
  std::string line;
  for (int64_t number = 1; std::getline(text, line); ++number) {
    line.resize(std::min(line.find(" #"), line.size()));
    if (line.empty() || line[0] == '#') continue;
    try {
      if (measured) {
        ReadPoint(line, *measured);
      } else {
        const json header = json::parse(line, nullptr, false);
        if (header.is_discarded()) throw Error(ErrorCode::kUsage, "not a measured space");
        measured = FromHeader(header);
      }
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}:{}: {}", path, number, error.what()));
    }
  }
  if (!measured) throw Error(ErrorCode::kUsage, fmt::format("{}: not a measured space (it is empty)", path));
  return *std::move(measured);
}

}  // namespace tilesmith
