#include "tuner/records/record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <ctime>
#include <type_traits>
#include <utility>

#include "layouts/base/error.h"
#include "tuner/records/record_fields.h"

namespace tilesmith {
namespace {

struct NamedStatus {
  TrialStatus status;
  std::string_view name;
};
constexpr std::array<NamedStatus, 9> kStatuses = {{{TrialStatus::kOk, "ok"},
                                                   {TrialStatus::kInvalidConfig, "invalid_config"},
                                                   {TrialStatus::kBuildError, "build_error"},
                                                   {TrialStatus::kBuildTimeout, "build_timeout"},
                                                   {TrialStatus::kRunCrash, "run_crash"},
                                                   {TrialStatus::kRunTimeout, "run_timeout"},
                                                   {TrialStatus::kWrongAnswer, "wrong_answer"},
                                                   {TrialStatus::kOutOfMemory, "out_of_memory"},
                                                   {TrialStatus::kWorkerLost, "worker_lost"}}};

// The first integer that is out of its range.
template <typename Struct>
std::string WhyOutOfRange(const Struct& values) {
  std::string why;
  const auto check = [&]<typename Value>(const StructField<Struct, Value>& field) {
    if constexpr (std::is_integral_v<Value> && !std::is_same_v<Value, bool>) {
      if (!field.range || !why.empty()) return;
      const auto [least, most] = *field.range;
      const Value value = values.*field.member;
      if (std::cmp_greater_equal(value, least) && std::cmp_less_equal(value, most)) return;
      why = fmt::format("field \"{}\" is {} (allowed: {} to {})", field.name, value, least, most);
    }
  };
  ForEachField<Struct>([&](const auto& field) {
    if constexpr (!std::is_same_v<decltype(field), const FormatField&>) check(field);
  });
  return why;
}

std::string WhyNoTiming(const Record& record) {
  if (record.status == TrialStatus::kOk && !(record.seconds > 0))
    return fmt::format("field \"seconds\" is {} in a record that is ok (allowed: > 0)", record.seconds);
  const auto why = [](const char* field, double seconds) {
    return fmt::format("field \"{}\" is {} (allowed: 0, and {:g} to {:g})", field, seconds, kMinSeconds,
                       kMaxSeconds);
  };
  if (!IsPlausibleTime(record.seconds)) return why("seconds", record.seconds);
  for (const double sample : record.sample_seconds) {
    if (!IsPlausibleTime(sample)) return why("samples", sample);
  }
  if (record.error && !(*record.error >= 0))
    return fmt::format("field \"error\" is {} (allowed: at least 0)", *record.error);
  return "";
}

}  // namespace

std::string_view TrialStatusName(TrialStatus status) {
  for (const NamedStatus& named : kStatuses) {
    if (named.status == status) return named.name;
  }
  return "unknown";
}

TrialStatus ParseTrialStatus(std::string_view text) {
  std::vector<std::string_view> known;
  for (const NamedStatus& named : kStatuses) {
    if (named.name == text) return named.status;
    known.push_back(named.name);
  }
  throw Error(ErrorCode::kUsage,
              fmt::format("unknown trial status \"{}\" (known: {})", text, fmt::join(known, ", ")));
}

std::string WhyImplausible(const Target& target) {
  constexpr int kSveLengths[] = {16, 32, 64};
  const bool has_length = std::ranges::find(kSveLengths, target.sve_bytes) != std::end(kSveLengths);
  if (target.isa == Isa::kSve ? !has_length : target.sve_bytes != 0) {
    return fmt::format("field \"sve_bytes\" is {}, the instruction set {}", target.sve_bytes,
                       IsaName(target.isa));
  }
  return WhyOutOfRange(target);
}
std::string WhyImplausible(const MeasureConditions& conditions) { return WhyOutOfRange(conditions); }
std::string WhyImplausible(const Record& record) {
  if (std::string why = WhyImplausible(record.target); !why.empty()) return why;
  if (std::string why = WhyOutOfRange(record.conditions); !why.empty()) return why;
  if (std::string why = WhyOutOfRange(record); !why.empty()) return why;
  return WhyNoTiming(record);
}

namespace {

constexpr const char* kFormat = "%Y-%m-%dT%H:%M:%SZ";

}  // namespace

std::string UtcText(int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts = {};
  gmtime_r(&time, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof(text), kFormat, &parts)};
}

std::optional<int64_t> UtcSeconds(const std::string& text) {
  std::tm parts = {};
  const char* end = strptime(text.c_str(), kFormat, &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return timegm(&parts);
}

std::string UtcNow() { return UtcText(std::time(nullptr)); }

}  // namespace tilesmith
