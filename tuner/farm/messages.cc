#include "tuner/farm/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "layouts/base/error.h"
#include "layouts/base/stable_hash.h"
#include "tuner/measure/protocol.h"
#include "tuner/measure/worker_link.h"
#include "tuner/records/json_fields.h"

namespace tilesmith {
namespace {

constexpr size_t kMaxNameBytes = 64;
constexpr size_t kMaxFieldBytes = size_t{1} << 16;
constexpr size_t kMaxAnswerBytes = size_t{1} << 20;  // its samples may be many

const std::string& Field(const FarmFields& fields, const char* name, size_t most_bytes = kMaxFieldBytes) {
  const auto found = fields.find(name);
  if (found == fields.end()) throw Error(ErrorCode::kUsage, fmt::format("field \"{}\" is missing", name));
  if (found->second.size() > most_bytes) {
    throw Error(ErrorCode::kUsage, fmt::format("field \"{}\" has {} bytes (allowed: {})", name,
                                               found->second.size(), most_bytes));
  }
  return found->second;
}

const std::string& NameField(const FarmFields& fields, const char* name) {
  const std::string& value = Field(fields, name);
  if (!IsFarmName(value)) {
    throw Error(
        ErrorCode::kUsage,
        fmt::format("field \"{}\" is no name of 1 to {} letters, digits, and \".-_\"", name, kMaxNameBytes));
  }
  return value;
}

template <typename Number>
Number NumberField(const FarmFields& fields, const char* name) {
  const std::string& text = Field(fields, name);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool fits = error == std::errc() && end == text.data() + text.size() && value >= 0;
  if constexpr (std::is_floating_point_v<Number>) fits = fits && std::isfinite(value);
  if (!fits) throw Error(ErrorCode::kUsage, fmt::format("field \"{}\" is no number from 0 on", name));
  return value;
}

// Names and bytes of files.
std::string FilesText(const std::map<std::string, int64_t>& files) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, bytes] : files) json[name] = bytes;
  return json.dump();
}

std::map<std::string, int64_t> FilesField(const FarmFields& fields) {
  const nlohmann::json json = ParseJson(Field(fields, "files"));
  if (!json.is_object()) throw Error(ErrorCode::kUsage, "field \"files\" is no JSON object");
  std::map<std::string, int64_t> files;
  int64_t total = 0;
  for (const auto& [name, value] : json.items()) {
    const auto bytes = JsonGet<int64_t>(json, name.c_str());
    if (!IsFarmName(name) || bytes < 0 || bytes > kMaxFarmFileBytes - total) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("field \"files\": more than {} MiB in all, or what is no name",
                              kMaxFarmFileBytes >> 20));
    }
    files[name] = bytes;
    total += bytes;
  }
  return files;
}

}  // namespace

std::string ReportFile(const std::string& name, const FarmJobReport& report) {
  return fmt::format("{}:{}:{}", report.worker, report.number, name);
}

bool IsJob(const FarmFields& fields) { return fields.contains("job"); }

FarmFields ToFields(const FarmJob& j) {
  return {{"id", j.id},     {"from", j.coordinator},
          {"job", j.kind},  {"target", JsonLine(TargetToJson(j.target))},
          {"text", j.text}, {"files", FilesText(j.files)}};
}

FarmFields ToFields(const FarmJobReport& r) {
  return {{"id", r.id},
          {"worker", r.worker},
          {"number", fmt::format("{}", r.number)},
          {"last", r.last ? "1" : "0"},
          {"refused", r.refused},
          {"text", r.text},
          {"files", FilesText(r.files)}};
}

FarmJob FarmJobFrom(const FarmFields& fields) {
  FarmJob job;
  job.id = NameField(fields, "id");
  job.coordinator = NameField(fields, "from");
  job.kind = NameField(fields, "job");
  job.target = TargetFromJson(ParseJson(Field(fields, "target")));
  job.text = Field(fields, "text");
  job.files = FilesField(fields);
  return job;
}

FarmJobReport FarmJobReportFrom(const FarmFields& fields) {
  FarmJobReport report;
  report.id = NameField(fields, "id");
  report.worker = NameField(fields, "worker");
  report.number = NumberField<int64_t>(fields, "number");
  report.last = NumberField<int64_t>(fields, "last") == 1;
  report.refused = Field(fields, "refused");
  report.text = Field(fields, "text");
  report.files = FilesField(fields);
  return report;
}

FarmFields ToFields(const FarmTrial& t) {
  return {{"id", t.id}, {"from", t.coordinator}, {"session", t.session}, {"trial", t.trial}};
}

FarmFields ToFields(const FarmAnswer& a) {
  return {{"id", a.id}, {"worker", a.worker}, {"ready", a.ready}, {"answer", a.answer}};
}

FarmFields ToFields(const FarmWorker& w) {
  return {{"class", w.class_name},
          {"host", w.host},
          {"target", JsonLine(TargetToJson(w.target))},
          {"peak_flops", fmt::format("{}", w.peak_flops)},
          {"barrier_seconds", fmt::format("{}", w.cores.barrier_seconds)},
          {"arithmetic_seconds", fmt::format("{}", w.cores.arithmetic_seconds)},
          {"doing", w.doing},
          {"trials", fmt::format("{}", w.trials)},
          {"failures", fmt::format("{}", w.failures)},
          {"refused", fmt::format("{}", w.refused)},
          {"trials_per_second", fmt::format("{}", w.trials_per_second)}};
}

FarmTrial FarmTrialFrom(const FarmFields& fields) {
  return {NameField(fields, "id"), NameField(fields, "from"), Field(fields, "session"),
          Field(fields, "trial")};
}

FarmAnswer FarmAnswerFrom(const FarmFields& fields) {
  return {NameField(fields, "id"), NameField(fields, "worker"), Field(fields, "ready"),
          Field(fields, "answer", kMaxAnswerBytes)};
}

FarmWorker FarmWorkerFrom(const std::string& id, const FarmFields& fields) {
  FarmWorker worker;
  worker.id = id;
  worker.class_name = NameField(fields, "class");
  worker.host = Field(fields, "host");
  worker.target = TargetFromJson(ParseJson(Field(fields, "target")));
  worker.peak_flops = NumberField<double>(fields, "peak_flops");
  worker.cores = {NumberField<double>(fields, "barrier_seconds"),
                  NumberField<double>(fields, "arithmetic_seconds")};
  worker.doing = Field(fields, "doing");
  worker.trials = NumberField<int64_t>(fields, "trials");
  worker.failures = NumberField<int64_t>(fields, "failures");
  worker.refused = NumberField<int64_t>(fields, "refused");
  worker.trials_per_second = NumberField<double>(fields, "trials_per_second");
  return worker;
}

std::string FarmTrialId(const MeasureSession& session, const TrialRequest& request, int repetition) {
  StableHash hash;
  hash.Add(MessageToText(SessionMessage{session}));
  hash.Add(request.template_name);
  hash.Add(request.config.ToString());
  hash.Add(int64_t{repetition});
  return fmt::format("{:016x}", hash.value());
}

std::string WhyRefused(const MeasureSession& session, const Target& own) {
  constexpr double kMaxSeconds = 600;
  constexpr int kMaxSamples = 10000;
  if (const std::string why = WhyNotMeasuredOn(own, session); !why.empty()) return why;
  const auto within = [](double value, double most) { return value >= 0 && value <= most; };
  if (session.conditions.threads > own.cores)
    return fmt::format("has {} cores, asked for {} threads", own.cores, session.conditions.threads);
  const TrialLimits& limits = session.limits;
  const SamplingPlan& sampling = session.sampling;
  if (!within(limits.build_seconds, kMaxSeconds) || !within(limits.run_seconds, kMaxSeconds) ||
      !within(sampling.seconds, kMaxSeconds)) {
    return fmt::format("gives a trial at most {} s, asked for {} to build, {} to run, {} of samples",
                       kMaxSeconds, limits.build_seconds, limits.run_seconds, sampling.seconds);
  }
  if (!within(sampling.min_samples, kMaxSamples) || !within(sampling.max_samples, kMaxSamples)) {
    return fmt::format("takes at most {} samples, asked for {} to {}", kMaxSamples, sampling.min_samples,
                       sampling.max_samples);
  }
  return "";
}

bool IsFarmName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && std::ranges::all_of(name, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
  });
}

std::string DefaultClass(const Target& target) {
  std::string name;
  const std::string_view isa = IsaName(target.isa);
  for (const char c : target.model) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain) name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!plain && !name.empty() && name.back() != '-') name += '-';
  }
  name = name.substr(0, kMaxNameBytes - 1 - isa.size());
  if (!name.empty() && name.back() != '-') name += '-';
  return name + std::string(isa);
}

}  // namespace tilesmith
