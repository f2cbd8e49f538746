#include "tuner/farm/farm_measurer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "layouts/base/check.h"
#include "layouts/measure/clock.h"
#include "tuner/measure/protocol.h"
#include "tuner/measure/worker_link.h"

namespace tilesmith {
namespace {

constexpr double kWaitSeconds = 0.25;
constexpr size_t kTrimFrom = 64;  // answers

}  // namespace

FarmMeasurer::FarmMeasurer(FarmRequest request)
    : request_(std::move(request)),
      farm_(request_.address, request_.timing, request_.stop),
      id_(NewCoordinatorId()) {
  Look();  // says at once when Redis is not there
  farm_.SetPatience(request_.timing.patience_seconds);
}

FarmMeasurer::~FarmMeasurer() {
  try {
    farm_.SetPatience(0);
    if (request_.sync) request_.sync();
    farm_.End(id_);
  } catch (const std::exception&) {  // it will be forgotten
  }
}

void FarmMeasurer::Warn(const std::string& text) const {
  if (request_.on_warning) request_.on_warning(text);
}

void FarmMeasurer::Look() {
  workers_ = farm_.Workers();
  std::erase_if(workers_, [&](const FarmWorker& worker) {
    return !worker.alive || worker.class_name != request_.class_name;
  });
  looked_ = NowSeconds();
  if (!workers_.empty()) {
    without_workers_ = 0;
    return;
  }
  if (without_workers_ == 0) without_workers_ = looked_;
  if (looked_ - without_workers_ <= request_.timing.patience_seconds) return;
  throw Error(ErrorCode::kEnvironment,
              fmt::format("farm {}: class {} has had no worker for {:.0f} s", farm_.address().ToString(),
                          request_.class_name, request_.timing.patience_seconds));
}

const std::vector<FarmWorker>& FarmMeasurer::AwaitWorkers() {
  Look();
  if (workers_.empty()) Warn(fmt::format("waiting for workers of class {}", request_.class_name));
  while (workers_.empty()) {
    CheckStop();
    std::this_thread::sleep_for(std::chrono::duration<double>(kWaitSeconds));
    Look();
  }
  return workers_;
}

void FarmMeasurer::Begin(const MeasureSession& session) {
  ForgetInFlight();
  AwaitWorkers();
  for (const FarmWorker& worker : workers_) {
    if (const std::string why = WhyRefused(session, worker.target); !why.empty()) {
      throw Error(ErrorCode::kEnvironment,
                  fmt::format("class {}: worker {} {}", request_.class_name, worker.id, why));
    }
  }
  session_ = session;
  session_text_ = MessageToText(SessionMessage{session});
}

int FarmMeasurer::Capacity() const {
  constexpr size_t kEach = 2;
  const size_t workers = together_ ? 1 : std::clamp<size_t>(workers_.size(), 1, kMaxQueued / kEach / 4);
  return static_cast<int>(kEach * workers);
}

void FarmMeasurer::ForgetInFlight() {
  std::vector<std::string> ids;
  ids.reserve(in_flight_.size());
  for (const auto& [id, trial] : in_flight_) ids.push_back(id);
  in_flight_.clear();
  results_.clear();
  farm_.Forget(id_, ids);
}

void FarmMeasurer::KeepTogether(bool together) {
  together_ = together;
  machine_.clear();
}

// The stream of the machine for all, when together: one that has nothing to do, rather than the first.
std::string FarmMeasurer::Stream() {
  if (!together_) return Farm::ClassStream(request_.class_name);
  if (machine_.empty()) {
    AwaitWorkers();
    const auto idle =
        std::ranges::find_if(workers_, [](const FarmWorker& worker) { return worker.doing == "idle"; });
    machine_ = (idle != workers_.end() ? *idle : workers_.front()).id;
  }
  return Farm::WorkerStream(machine_);
}

void FarmMeasurer::Send(const std::string& id, const InFlight& trial) {
  const FarmTrial message = {id, id_, session_text_,
                             MessageToText(TrialMessage{trial.ticket, trial.request})};
  while (!farm_.Submit(Stream(), message)) {
    CheckStop();
    std::this_thread::sleep_for(std::chrono::duration<double>(kWaitSeconds));
  }
}

Ticket FarmMeasurer::Submit(const TrialRequest& request) {
  TILESMITH_CHECK(!session_text_.empty(), "Submit before Begin");
  const int repetition = repetitions_[FarmTrialId(session_, request, 0)]++;
  const std::string id = FarmTrialId(session_, request, repetition);
  const InFlight& trial = in_flight_.emplace(id, InFlight{++last_, request}).first->second;
  Send(id, trial);
  return last_;
}

std::pair<Ticket, TrialResult> FarmMeasurer::Next() {
  TILESMITH_CHECK(!in_flight_.empty() || !results_.empty(), "no trial is in flight");
  while (results_.empty()) {
    if (read_entries_.size() >= kTrimFrom) Trim();
    Receive(std::min(kWaitSeconds, request_.timing.heartbeat_seconds));
    if (!results_.empty()) break;
    CheckStop();
    if (NowSeconds() - looked_ >= request_.timing.heartbeat_seconds) FindLost();
  }
  std::pair<Ticket, TrialResult> result = std::move(results_.front());
  results_.erase(results_.begin());
  stopped_ = 0;
  return result;
}

// All that were handed out are the caller's, who kept them before asking for more.
void FarmMeasurer::Trim() {
  if (request_.sync) request_.sync();
  farm_.Trim(id_, read_entries_);
  read_entries_.clear();
}

void FarmMeasurer::Receive(double seconds) {
  for (const auto& [entry, fields] : farm_.Answers(id_, read_, seconds)) {
    read_ = entry;
    read_entries_.push_back(entry);
    Enter(fields);
  }
}

// An answer to what nobody asked for, or asked for no longer, is passed over.
void FarmMeasurer::Enter(const FarmFields& fields) {
  std::string id;
  try {
    const FarmAnswer answer = FarmAnswerFrom(fields);
    id = answer.id;
    const auto found = in_flight_.find(id);
    if (found == in_flight_.end()) return;
    Message message = MessageFromText(answer.answer);
    if (const auto* error = std::get_if<ErrorMessage>(&message)) {
      throw Error(ErrorCode::kEnvironment, fmt::format("worker {}: {}", answer.worker, error->why));
    }
    const Message ready = MessageFromText(answer.ready);
    const auto* machine = std::get_if<ReadyMessage>(&ready);
    auto* result = std::get_if<ResultMessage>(&message);
    if (machine == nullptr || result == nullptr || result->ticket != found->second.ticket)
      return EnterGarbled(id, "no result of the trial");
    if (const std::string why = WhyNotMeasuredOn(machine->target, session_); !why.empty())
      return EnterGarbled(id, fmt::format("worker {} {}", answer.worker, why));
    result->result.target = CapIsa(machine->target, session_.cpu.isa);
    result->result.worker = answer.worker;
    results_.emplace_back(result->ticket, std::move(result->result));
    in_flight_.erase(found);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kEnvironment || error.code() == ErrorCode::kInterrupted) throw;
    EnterGarbled(id, error.what());
  }
}

// A trial whose answer is none is asked for again, a few times.
void FarmMeasurer::EnterGarbled(const std::string& id, const std::string& why) {
  Warn("a garbled answer: " + why);
  const auto found = in_flight_.find(id);
  if (found == in_flight_.end()) return;
  if (++found->second.garbled < kMaxDeliveries) return Send(id, found->second);
  TrialResult lost;
  lost.status = TrialStatus::kWorkerLost;
  lost.detail = fmt::format("answered {} times, by what is no answer: {}", kMaxDeliveries, why);
  lost.target = session_.cpu;
  results_.emplace_back(found->second.ticket, std::move(lost));
  in_flight_.erase(found);
}

// What is neither open nor answered was lost with the Redis that held it. Closing and answering is one step,
// so whatever was closed when we looked has been answered when we read on.
void FarmMeasurer::FindLost() {
  Look();
  const bool machine_lost =
      together_ && !machine_.empty() &&
      std::ranges::none_of(workers_, [&](const FarmWorker& worker) { return worker.id == machine_; });
  if (machine_lost) {
    Warn(fmt::format("worker {} is gone, another one goes on", machine_));
    machine_.clear();
  }
  const std::set<std::string> open = farm_.Open(id_);
  std::vector<std::string> lost;
  for (const auto& [id, trial] : in_flight_) {
    if (machine_lost || !open.contains(id)) lost.push_back(id);
  }
  if (lost.empty()) return;
  read_ = "0";  // a Redis that begins anew may count anew
  read_entries_.clear();
  for (size_t before = 1; before != read_entries_.size();) {
    before = read_entries_.size();
    Receive(0);
  }
  for (const std::string& id : lost) {
    const auto found = in_flight_.find(id);
    if (found != in_flight_.end()) Send(id, found->second);
  }
}

// A worker that is alive answers soon.
void FarmMeasurer::CheckStop() {
  if (!IsStopped(request_.stop)) return;
  if (stopped_ == 0) stopped_ = NowSeconds();
  if (workers_.empty() || NowSeconds() - stopped_ > request_.timing.dead_seconds)
    throw Error(ErrorCode::kInterrupted, "interrupted while the farm does not answer");
}

}  // namespace tilesmith
