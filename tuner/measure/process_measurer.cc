#include "tuner/measure/process_measurer.h"

#include <fmt/format.h>

#include "layouts/base/check.h"
#include "layouts/base/error.h"

namespace tilesmith {

// An error leaves no worker, and is told by its name.
template <typename Action>
void ProcessMeasurer::OrFail(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    worker_.reset();
    throw Error(ErrorCode::kEnvironment,
                fmt::format("measuring worker {}: {}", worker_argv_[0], error.what()));
  }
}

void ProcessMeasurer::Begin(const MeasureSession& session) {
  session_ = session;
  if (in_flight_) worker_.reset();  // it would answer what nobody waits for
  in_flight_.reset();
  // A worker that died while idle costs nothing but its replacement.
  bool alive = false;
  if (worker_) OrFail([&] { alive = worker_->link.Begin(session); });
  if (!alive) StartWorker();
}

void ProcessMeasurer::StartWorker() {
  worker_ = std::make_unique<Worker>(worker_argv_);
  ++workers_started_;
  OrFail([&] {
    if (worker_->link.Start() && worker_->link.Begin(*session_)) return;
    throw Error(ErrorCode::kEnvironment, worker_->process.WaitForEnd().ToString());
  });
}

void ProcessMeasurer::Prepare(std::span<const TrialRequest> requests) {
  TILESMITH_CHECK(session_.has_value() && !in_flight_, "Prepare before Begin, or beside a trial");
  if (session_->cpu.device == kCpuDevice || requests.empty()) return;
  if (!worker_) StartWorker();
  bool prepared = false;
  try {
    prepared = worker_->link.Prepare(requests);
  } catch (const Error&) {  // too slow, or garbled
  }
  if (!prepared) worker_.reset();
}

Ticket ProcessMeasurer::Submit(const TrialRequest& request) {
  TILESMITH_CHECK(session_.has_value() && !in_flight_, "Submit before Begin, or a second trial");
  if (!worker_) StartWorker();
  in_flight_ = request;
  worker_->link.Submit(++last_, request);
  return last_;
}

// What became of a trial that has no result; `lost` says how its worker was killed from outside, if it was.
TrialResult ProcessMeasurer::Judge(LinkedTrial trial, std::string& lost) {
  using End = LinkedTrial::End;
  if (trial.end == End::kResult) return std::move(trial.result);
  const bool running = trial.running;
  const char* const doing = running ? "running" : "building";
  TrialResult failed;
  failed.target = CapIsa(worker_->link.target(), session_->cpu.isa);
  failed.status = running ? TrialStatus::kRunCrash : TrialStatus::kBuildError;
  if (trial.end == End::kTimeout) {
    failed.status = running ? TrialStatus::kRunTimeout : TrialStatus::kBuildTimeout;
    failed.detail = fmt::format("{} took over {} s", doing,
                                running ? session_->limits.run_seconds : session_->limits.build_seconds);
  } else if (trial.end == End::kGarbled) {
    failed.detail = fmt::format("garbled answer from the worker: \"{}\"", trial.garbled);
  } else {
    const ProcessEnd end = worker_->process.WaitForEnd();
    if (end.FromOutside()) lost = end.ToString();
    failed.detail = fmt::format("worker {} while {}", end.ToString(), doing);
  }
  worker_.reset();
  return failed;
}

std::pair<Ticket, TrialResult> ProcessMeasurer::Next() {
  TILESMITH_CHECK(in_flight_.has_value(), "no trial is in flight");
  const TrialRequest request = *std::move(in_flight_);
  in_flight_.reset();
  constexpr int kAttempts = 2;
  for (int attempt = 1;; ++attempt) {
    std::string lost;
    TrialResult result = Judge(worker_->link.Wait(), lost);
    if (lost.empty()) return {last_, std::move(result)};
    if (attempt == kAttempts) {
      result.status = TrialStatus::kWorkerLost;
      result.detail = fmt::format("worker {} twice", lost);
      return {last_, std::move(result)};
    }
    StartWorker();
    worker_->link.Submit(last_, request);
  }
}

}  // namespace tilesmith
