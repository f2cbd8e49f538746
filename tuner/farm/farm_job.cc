#include "tuner/farm/farm_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "layouts/base/error.h"
#include "layouts/measure/clock.h"

namespace tilesmith {
namespace {

constexpr double kNewsSeconds = 0.25;

}  // namespace

FarmJobRun::FarmJobRun(FarmJobRequest request)
    : request_(std::move(request)), farm_(request_.address, request_.timing, request_.stop) {
  request_.job.coordinator = NewCoordinatorId();
  Look();  // says at once when Redis is not there
  farm_.SetPatience(request_.timing.patience_seconds);
}

FarmJobRun::~FarmJobRun() {
  const std::string& coordinator = request_.job.coordinator;
  try {
    farm_.SetPatience(0);
    farm_.End(coordinator);
    for (const auto& [name, bytes] : files_) farm_.RemoveFile(coordinator, name, std::ssize(bytes));
  } catch (const std::exception&) {  // it will be forgotten
  }
}

void FarmJobRun::Warn(const std::string& text) const {
  if (request_.on_warning) request_.on_warning(text);
}

void FarmJobRun::CheckStop() const {
  if (IsStopped(request_.stop)) throw Error(ErrorCode::kInterrupted, "interrupted while the farm works");
}

void FarmJobRun::Look() {
  const std::vector<FarmWorker> workers = farm_.Workers();
  looked_ = NowSeconds();
  const auto serves = [&](const FarmWorker& worker) {
    return worker.alive && worker.class_name == request_.class_name;
  };
  const bool any = std::ranges::any_of(workers, serves);
  worker_lost_ = !worker_.empty() && std::ranges::none_of(workers, [&](const FarmWorker& worker) {
    return serves(worker) && worker.id == worker_;
  });
  if (any) without_workers_ = 0;
  if (!any && without_workers_ == 0) without_workers_ = looked_;
  if (any || looked_ - without_workers_ <= request_.timing.patience_seconds) return;
  throw Error(ErrorCode::kEnvironment,
              fmt::format("farm {}: class {} has had no worker for {:.0f} s", farm_.address().ToString(),
                          request_.class_name, request_.timing.patience_seconds));
}

void FarmJobRun::Put(const std::string& name, std::string bytes) {
  int64_t total = std::ssize(bytes);
  for (const auto& [other, contents] : files_) total += other == name ? 0 : std::ssize(contents);
  if (total > kMaxFarmFileBytes) {
    throw Error(ErrorCode::kUsage, fmt::format("{} and the job's other files have {} bytes (allowed: {})",
                                               name, total, kMaxFarmFileBytes));
  }
  files_[name] = std::move(bytes);
}

// Each time under another name, so that who still does it finds that it is not wanted.
void FarmJobRun::Submit() {
  FarmJob& job = request_.job;
  if (submitted_ > 0) farm_.Forget(job.coordinator, {{job.id}});
  worker_.clear();
  ++submitted_;
  job.id = fmt::format("job-{}", submitted_);
  job.files.clear();
  for (const auto& [name, bytes] : files_) {
    farm_.PutFile(job.coordinator, name, bytes);
    job.files[name] = std::ssize(bytes);
  }
  while (!farm_.Submit(Farm::ClassStream(request_.class_name), job)) {
    CheckStop();
    std::this_thread::sleep_for(std::chrono::duration<double>(kNewsSeconds));
  }
}

void FarmJobRun::Run(const std::function<void(const FarmJobNews&)>& take) {
  const double heartbeat = request_.timing.heartbeat_seconds;
  Submit();
  while (!Receive(take, std::min(kNewsSeconds, heartbeat))) {
    CheckStop();
    if (NowSeconds() - looked_ < heartbeat) continue;
    Look();
    if (!worker_lost_ && !IsLost()) continue;
    // Closing and answering is one step: what was closed when we looked has been answered when we read on.
    read_ = "0";  // a Redis that begins anew may count anew
    if (Receive(take, 0)) return;
    BeginAnew();
  }
}

// With the files as they are by now, which who claims the old one would not have.
void FarmJobRun::BeginAnew() {
  if (worker_lost_ && ++lost_ >= kMaxDeliveries) {
    throw Error(ErrorCode::kEnvironment,
                fmt::format("given to {} workers, none of which finished it", kMaxDeliveries));
  }
  Warn(worker_lost_ ? fmt::format("worker {} is gone, another one begins anew", worker_)
                    : "what the farm held is gone, the job begins anew");
  Submit();
}

bool FarmJobRun::IsLost() {
  const FarmJob& job = request_.job;
  for (const auto& [name, bytes] : job.files) farm_.KeepFile(job.coordinator, name, bytes);
  return !farm_.Open(job.coordinator).contains(job.id);
}

// True when the job is over. Whatever was read is taken out.
bool FarmJobRun::Receive(const std::function<void(const FarmJobNews&)>& take, double seconds) {
  bool over = false;
  for (const auto& [entry, fields] : farm_.Answers(request_.job.coordinator, read_, seconds)) {
    read_ = entry;
    over = over || Enter(fields, take);
    farm_.Trim(request_.job.coordinator, {{entry}});
  }
  return over;
}

bool FarmJobRun::Enter(const FarmFields& fields, const std::function<void(const FarmJobNews&)>& take) {
  FarmJobReport report;
  try {
    report = FarmJobReportFrom(fields);
    if (report.id != request_.job.id) return false;
    if (!report.refused.empty())
      throw Error(ErrorCode::kEnvironment, fmt::format("worker {}: {}", report.worker, report.refused));
    FarmJobNews news{report.worker, report.text, {}, report.last};
    for (const auto& [name, bytes] : report.files) {
      const std::string file = ReportFile(name, report);
      std::optional<std::string> contents = farm_.GetFile(request_.job.coordinator, file, bytes);
      if (!contents) throw Error(ErrorCode::kUsage, fmt::format("file {} is not there", name));
      farm_.RemoveFile(request_.job.coordinator, file, bytes);
      news.files[name] = *std::move(contents);
    }
    worker_ = report.worker;
    take(news);
    return report.last;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUsage) throw;
    return EnterGarbled(error.what(), report.last);
  }
}

bool FarmJobRun::EnterGarbled(const std::string& why, bool last) {
  Warn("a garbled answer: " + why);
  if (!last) return false;
  if (++garbled_ < kMaxDeliveries) {
    Submit();
    return false;
  }
  throw Error(ErrorCode::kEnvironment,
              fmt::format("the farm answered {} times, by what is no answer: {}", kMaxDeliveries, why));
}

}  // namespace tilesmith
