#include "tuner/simulation/measured_space.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "layouts/base/text_file.h"
#include "tuner/records/json_fields.h"
#include "tuner/records/log.h"

namespace tilesmith {
namespace {

using nlohmann::json;

constexpr const char* kSpaceFormatField = "tilesmith_space";
constexpr int kSpaceFormat = 1;
constexpr std::string_view kFailed = "failed";

json HeaderOf(const MeasuredSpace& measured) {
  json knobs = json::array();
  for (const Knob& knob : measured.knobs) knobs.push_back({{"name", knob.name}, {"values", knob.values}});
  return {{kSpaceFormatField, kSpaceFormat},
          {"target", TargetToJson(measured.target)},
          {"workload", WorkloadToString(measured.workload)},
          {"template", measured.template_name},
          {"conditions", ConditionsToJson(measured.conditions)},
          {"knobs", std::move(knobs)}};
}

[[noreturn]] void RefuseSpace(const std::string& why) { throw Error(ErrorCode::kUsage, why); }

// Far more than any template's, and few enough to compare each with each.
constexpr size_t kMaxKnobs = 64, kMaxValues = 1024;

const json& ListIn(const json& object, const char* name, size_t most) {
  const json& list = JsonField(object, name);
  if (!list.is_array()) RefuseSpace(fmt::format("field \"{}\" is a {}, not a list", name, list.type_name()));
  if (list.size() > most)
    RefuseSpace(fmt::format("field \"{}\" lists {} (at most {})", name, list.size(), most));
  return list;
}

Knob KnobFromJson(const json& object) {
  Knob knob;
  knob.name = JsonGet<std::string>(object, "name");
  for (const json& item : ListIn(object, "values", kMaxValues)) {
    const auto value = JsonValue<int64_t>(item, "values");
    if (std::ranges::count(knob.values, value) > 0)
      RefuseSpace(fmt::format("knob \"{}\" lists {} twice", knob.name, value));
    knob.values.push_back(value);
  }
  if (knob.values.empty()) RefuseSpace(fmt::format("knob \"{}\" has no values", knob.name));
  return knob;
}

std::vector<Knob> KnobsFromJson(const json& list) {
  std::vector<Knob> knobs;
  uint64_t size = 1;
  for (const json& item : list) {
    Knob knob = KnobFromJson(item);
    if (std::ranges::find(knobs, knob.name, &Knob::name) != knobs.end())
      RefuseSpace(fmt::format("two knobs are named \"{}\"", knob.name));
    if (knob.values.size() > kMaxSpaceCombinations / size)
      RefuseSpace(fmt::format("the knobs have more than {} combinations", kMaxSpaceCombinations));
    size *= knob.values.size();
    knobs.push_back(std::move(knob));
  }
  return knobs;
}

// Searchers ask the template about any config of the file.
void CheckKnobs(const MeasuredSpace& measured) {
  const ConvTemplate& conv_template = FindConvTemplate(measured.template_name);
  const Target& cpu = measured.target;
  const Support support = conv_template.Supports(measured.workload, cpu);
  if (!support.ok) {
    RefuseSpace(fmt::format("template {} does not compute {}: {}", measured.template_name,
                            WorkloadToString(measured.workload), support.reason));
  }
  const ConfigSpace space = conv_template.Space(measured.workload, cpu);
  for (const Knob& knob : space.knobs()) {
    if (std::ranges::find(measured.knobs, knob.name, &Knob::name) == measured.knobs.end())
      RefuseSpace(fmt::format("knob \"{}\" of template {} is missing", knob.name, measured.template_name));
  }
  for (const Knob& knob : measured.knobs) {
    const auto known = std::ranges::find(space.knobs(), knob.name, &Knob::name);
    if (known == space.knobs().end())
      RefuseSpace(fmt::format("template {} has no knob \"{}\"", measured.template_name, knob.name));
    for (const int64_t value : knob.values) {
      if (std::ranges::count(known->values, value) > 0) continue;
      RefuseSpace(fmt::format("knob \"{}\" is never {} (its values: {})", knob.name, value,
                              fmt::join(known->values, ", ")));
    }
  }
}

MeasuredSpace FromHeader(const json& header) {
  const int format = JsonGet<int>(header, kSpaceFormatField);
  if (format != kSpaceFormat)
    RefuseSpace(fmt::format("space format {} (this version reads {})", format, kSpaceFormat));
  MeasuredSpace measured;
  measured.target = TargetFromJson(JsonField(header, "target"));
  measured.workload = ParseWorkload(JsonGet<std::string>(header, "workload"));
  measured.template_name = JsonGet<std::string>(header, "template");
  measured.conditions = ConditionsFromJson(JsonField(header, "conditions"));
  measured.knobs = KnobsFromJson(ListIn(header, "knobs", kMaxKnobs));
  CheckKnobs(measured);
  return measured;
}

// What follows the header: one config a line.
class PointReader {
 public:
  explicit PointReader(MeasuredSpace& measured)
      : measured_(measured), size_(ConfigSpace(measured.knobs, nullptr).size()) {}

  void Read(std::string_view line) {
    uint64_t index = 0;
    const char* const end = line.data() + line.size();
    const auto after_index = std::from_chars(line.data(), end, index);
    if (after_index.ec != std::errc() || after_index.ptr == end || *after_index.ptr != ' ')
      RefuseSpace(fmt::format("\"{}\" is not an index and a time", line));
    if (index >= size_) RefuseSpace(fmt::format("index {} in a space of {}", index, size_));
    const std::string_view rest(after_index.ptr + 1, end);
    if (!measured_.seconds.emplace(index, SecondsIn(rest)).second)
      RefuseSpace(fmt::format("index {} comes twice", index));
  }

 private:
  static std::optional<double> SecondsIn(std::string_view text) {
    if (text == kFailed) return std::nullopt;
    const char* const end = text.data() + text.size();
    double microseconds = 0;
    const auto after = std::from_chars(text.data(), end, microseconds);
    if (after.ec != std::errc() || after.ptr != end || !(microseconds > 0) ||
        !IsPlausibleTime(microseconds * 1e-6)) {
      RefuseSpace(fmt::format("\"{}\" is not a time in microseconds", text));
    }
    return microseconds * 1e-6;
  }

  MeasuredSpace& measured_;
  uint64_t size_;
};

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
  MeasuredSpace measured;
  std::optional<PointReader> points;  // once there was a header
  std::string line;
  for (int64_t number = 1; std::getline(text, line); ++number) {
    line.resize(std::min(line.find(" #"), line.size()));
    if (line.empty() || line[0] == '#') continue;
    try {
      if (points) {
        points->Read(line);
        continue;
      }
      const json header = ParseJson(line);
      if (!header.is_object() || !header.contains(kSpaceFormatField)) {
        const std::string kind = FileKind(header);
        RefuseSpace(kind.empty() ? "not a measured space" : kind + ", not a measured space");
      }
      measured = FromHeader(header);
      points.emplace(measured);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}:{}: {}", path, number, error.what()));
    }
  }
  if (!points) RefuseSpace(fmt::format("{}: not a measured space (it is empty)", path));
  const auto worked = [](const auto& point) { return point.second.has_value(); };
  if (std::ranges::none_of(measured.seconds, worked))
    RefuseSpace(fmt::format("{}: it has no config that worked", path));
  return measured;
}

}  // namespace tilesmith
