#include "tuner/measure/process_measurer.h"

#include "layouts/base/check.h"
#include "tuner/records/json_fields.h"

namespace tilesmith {
namespace {

using nlohmann::json;

// Starting a process and preparing a session's data are no trial: generous, but not endless.
constexpr double kStartSeconds = 60;
constexpr double kSessionSeconds = 600;

TrialResult Failed(TrialStatus status, std::string detail) {
  TrialResult result;
  result.status = status;
  result.detail = std::move(detail);
  return result;
}

}  // namespace

void ProcessMeasurer::Begin(const MeasureSession& session) {
  session_ = session;
  // A worker that died while idle costs nothing but its replacement.
  std::string end;
  if (worker_ && SendSession(end)) return;
  StartWorker();
}

void ProcessMeasurer::Fail(const std::string& why) {
  worker_.reset();
  throw Error(ErrorCode::kEnvironment, fmt::format("measuring worker {}: {}", worker_argv_[0], why));
}

// The next line, or nullopt when the worker is gone; `end` then says how.
std::optional<std::string> ProcessMeasurer::Expect(double seconds, std::string& end) {
  std::string line;
  switch (worker_->channel().ReadLine(line, LineChannel::After(seconds))) {
    case LineChannel::Read::kLine:
      return line;
    case LineChannel::Read::kTimeout:
      Fail(fmt::format("no answer within {} s", seconds));
    case LineChannel::Read::kEnd:
      end = worker_->WaitForEnd().ToString();
      worker_.reset();
  }
  return std::nullopt;
}

void ProcessMeasurer::StartWorker() {
  worker_ = std::make_unique<ChildProcess>(worker_argv_);
  ++workers_started_;
  std::string end;
  const std::optional<std::string> hello = Expect(kStartSeconds, end);
  if (!hello) Fail(end);
  if (!json::parse(*hello, nullptr, false).contains("ready")) {
    Fail(fmt::format("is none, it says \"{}\"", hello->substr(0, 80)));
  }
  if (!SendSession(end)) Fail(end);
}

bool ProcessMeasurer::SendSession(std::string& end) {
  worker_->channel().WriteLine(JsonLine({{"session", SessionToJson(*session_)}}));
  const std::optional<std::string> answer = Expect(kSessionSeconds, end);
  if (!answer) return false;
  const json message = json::parse(*answer, nullptr, false);
  if (message.contains("session")) return true;
  Fail(fmt::format("cannot measure {}: {}", WorkloadToString(session_->workload),
                   JsonGetOr<std::string>(message, "error", "garbled answer")));
}

TrialResult ProcessMeasurer::Died(bool running, std::string& lost, bool& was_lost) {
  const ProcessEnd end = worker_->WaitForEnd();
  worker_.reset();
  was_lost = end.FromOutside();
  if (was_lost) lost = end.ToString();
  return Failed(running ? TrialStatus::kRunCrash : TrialStatus::kBuildError,
                fmt::format("worker {} while {}", end.ToString(), running ? "running" : "building"));
}

// nullopt when the worker was killed from outside; `lost` then says how.
std::optional<TrialResult> ProcessMeasurer::TryTrial(const TrialRequest& request, std::string& lost) {
  if (!worker_) StartWorker();
  const TrialLimits& limits = session_->limits;
  // When the worker is gone already, nobody answers: the read below finds out how it ended.
  worker_->channel().WriteLine(JsonLine({{"trial", TrialToJson(request)}}));
  bool running = false;
  LineChannel::Deadline deadline = LineChannel::After(limits.build_seconds);
  for (std::string line;;) {
    const LineChannel::Read read = worker_->channel().ReadLine(line, deadline);
    if (read == LineChannel::Read::kTimeout) {
      worker_->Kill();
      worker_.reset();
      return Failed(running ? TrialStatus::kRunTimeout : TrialStatus::kBuildTimeout,
                    fmt::format("{} took over {} s", running ? "running" : "building",
                                running ? limits.run_seconds : limits.build_seconds));
    }
    if (read == LineChannel::Read::kEnd) {
      bool was_lost = false;
      const TrialResult result = Died(running, lost, was_lost);
      return was_lost ? std::nullopt : std::optional(result);
    }
    const json message = json::parse(line, nullptr, false);
    if (message.contains("running")) {
      running = true;
      deadline = LineChannel::After(limits.run_seconds);
    } else if (message.contains("result")) {
      return ResultFromJson(message["result"]);
    } else {
      worker_.reset();
      return Failed(running ? TrialStatus::kRunCrash : TrialStatus::kBuildError,
                    fmt::format("garbled answer from the worker: \"{}\"", line.substr(0, 80)));
    }
  }
}

TrialResult ProcessMeasurer::Measure(const TrialRequest& request) {
  TILESMITH_CHECK(session_.has_value(), "Measure before Begin");
  std::string lost;
  constexpr int kAttempts = 2;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (std::optional<TrialResult> result = TryTrial(request, lost)) return *std::move(result);
  }
  return Failed(TrialStatus::kWorkerLost, fmt::format("worker {} twice", lost));
}

}  // namespace tilesmith
