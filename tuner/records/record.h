// Tuning records: one measured config, and all that is needed to believe it and to build it again.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layouts/base/target.h"
#include "ops/conv/workload.h"
#include "templates/base/conv_template.h"

namespace tilesmith {

// The one spelling of a target in files and messages.
nlohmann::json TargetToJson(const Target& target);
// Throws Error(kUsage) naming the field that is missing or wrong.
Target TargetFromJson(const nlohmann::json& json);

enum class TrialStatus {
  kOk,
  kInvalidConfig,
  kBuildError,
  kBuildTimeout,
  kRunCrash,
  kRunTimeout,
  kWrongAnswer,
  kOutOfMemory,
  kWorkerLost,  // the worker died without our config being to blame (killed from outside)
};
std::string_view TrialStatusName(TrialStatus status);  // "ok", "invalid_config", ...
TrialStatus ParseTrialStatus(std::string_view text);   // throws Error(kUsage)

struct MeasureConditions {
  int threads = 1;
  bool pinned = true;
  bool cold_weights = false;  // weights evicted to memory before every sample
  bool operator==(const MeasureConditions&) const = default;
};
nlohmann::json ConditionsToJson(const MeasureConditions& conditions);
// Throws Error(kUsage) naming the field that is missing or wrong.
MeasureConditions ConditionsFromJson(const nlohmann::json& json);

// Looking for the fastest config; looking for a good one in a certain pair of layouts; timing the best ones
// again, side by side.
constexpr const char* kPurposeSearch = "search";
constexpr const char* kPurposeLayouts = "layouts";
constexpr const char* kPurposeRetime = "retime";

struct Record {
  Target target;  // what it was measured on; records of another one are kept apart
  ConvWorkload workload;
  std::string template_name;
  Config config;
  LayoutPair layouts;
  MeasureConditions conditions;
  TrialStatus status = TrialStatus::kOk;
  std::string detail;                  // of a failure
  std::vector<double> sample_seconds;  // in the order taken
  double seconds = 0;                  // the statistic of the samples; 0 unless ok
  std::string statistic = "p25";       // which one
  // Largest difference from the exact answer among those checked, relative to their root mean square.
  std::optional<double> error = std::nullopt;
  bool early_stopped = false;  // given up as hopeless: seconds is rougher than usual
  // What the trial was for: kPurposeSearch, kPurposeLayouts or kPurposeRetime; "" where a log does not say.
  std::string purpose = {};
  int task_trials = 0;  // of a distilled record: how many trials its task was given; 0: unknown
  std::string tuner;    // who chose the config
  uint64_t seed = 0;
  std::string time;  // UTC, ISO 8601
  // What an imported record was made from, in its own format (tuner/autotvm/autotvm.h).
  std::string origin = "";
};

constexpr int kRecordFormat = 1;

// Time is given in seconds that a machine can have taken: none, or between these. Far outside of what anyone
// measures, and close enough together that sums and ratios of such times are finite.
constexpr double kMinSeconds = 1e-12, kMaxSeconds = 1e6;
inline bool IsPlausibleTime(double seconds) {
  return seconds == 0 || (seconds >= kMinSeconds && seconds <= kMaxSeconds);
}
constexpr int kMaxThreads = 1 << 16;

// Why the figures cannot have been measured: a count that is not positive, a time that is not plausible; ""
// when they can.
std::string WhyImplausible(const Target& target);
std::string WhyImplausible(const MeasureConditions& conditions);
std::string WhyImplausible(const Record& record);

nlohmann::json RecordToJson(const Record& record);
// Throws Error(kUsage) naming the field that is missing or wrong. What it returns is plausible.
Record RecordFromJson(const nlohmann::json& json);

// Members of a record that other formats have too. Reading them throws as RecordFromJson does.
nlohmann::json ConfigToJson(const Config& config);
Config ConfigFromJson(const nlohmann::json& json);
nlohmann::json LayoutsToJson(const LayoutPair& layouts);
LayoutPair LayoutsFromJson(const nlohmann::json& json);

// Times as records have them: UTC, ISO 8601, whole seconds.
//
// "2025-01-02T03:04:05Z" of seconds since 1970.
std::string UtcText(int64_t seconds);
// The inverse; nullopt when the text is no such time.
std::optional<int64_t> UtcSeconds(const std::string& text);
std::string UtcNow();

}  // namespace tilesmith
