#include "tuner/farm/farm_worker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "layouts/base/error.h"
#include "layouts/measure/clock.h"
#include "tuner/measure/protocol.h"
#include "tuner/measure/worker_link.h"

namespace tilesmith {
namespace {

constexpr size_t kMaxShown = 200;      // of what a worker does
constexpr size_t kMaxRefused = 10000;  // of why
constexpr double kForEver = std::numeric_limits<double>::infinity();

std::string WrongClass(const FarmWorker& worker, const std::string& kind) {
  return fmt::format("class {} is of {}, this machine is {}: give it another class", worker.class_name, kind,
                     MachineKind(worker.target));
}

// Errors of Redis and of the machine, rather than of what a message says.
bool IsOurs(const Error& error) {
  return error.code() == ErrorCode::kEnvironment || error.code() == ErrorCode::kInterrupted ||
         error.code() == ErrorCode::kInternal;
}

// What a session may use where it names no limit, or one that is none.
int64_t PhysicalBytes() { return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE); }

// A file of a job is not there any more.
struct FileLost {};

// Tells that the worker is alive, what it does and what it holds, from a thread of its own.
class Heart {
 public:
  explicit Heart(const FarmService& service)
      : farm_(service.address, service.timing, &ending_), worker_(service.worker) {
    worker_.doing = "idle";
    Beat();
    farm_.SetPatience(kForEver);
    thread_ = std::thread([this] { Run(); });
  }
  ~Heart() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Heart(const Heart&) = delete;
  Heart& operator=(const Heart&) = delete;

  // What is held from now on, the one that runs first.
  void Hold(std::vector<FarmDelivery> held) {
    const std::lock_guard lock(mutex_);
    held_ = std::move(held);
    for (FarmDelivery& delivery : held_) delivery.fields.clear();
  }
  // By what it is to say of itself.
  template <typename Change>
  void Update(const Change& change) {
    const std::lock_guard lock(mutex_);
    change(worker_);
  }
  // Throws what ended it: the class became another one's, or Redis refuses.
  void CheckAlive() {
    const std::lock_guard lock(mutex_);
    if (!why_ended_.empty()) throw Error(ErrorCode::kEnvironment, why_ended_);
  }

 private:
  void Beat() {
    FarmWorker worker;
    std::vector<FarmDelivery> held;
    {
      const std::lock_guard lock(mutex_);
      worker_.trials_per_second = Rate();
      worker = worker_;
      held = held_;
    }
    if (const auto kind = farm_.Announce(worker, held))
      throw Error(ErrorCode::kEnvironment, WrongClass(worker, *kind));
  }

  // Over the last half minute.
  double Rate() {
    constexpr double kWindowSeconds = 30;
    const double now = NowSeconds();
    counts_.emplace_back(now, worker_.trials);
    while (now - counts_.front().first > kWindowSeconds) counts_.pop_front();
    const auto& [since, before] = counts_.front();
    return now > since ? static_cast<double>(worker_.trials - before) / (now - since) : 0;
  }

  void Run() {
    const std::chrono::duration<double> period(farm_.timing().heartbeat_seconds);
    try {
      for (;;) {
        {
          std::unique_lock lock(mutex_);
          if (changed_.wait_for(lock, period, [&] { return ending_.load(); })) return;
        }
        Beat();
      }
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex_);
      if (!ending_) why_ended_ = error.what();
    }
  }

  StopFlag ending_ = false;
  Farm farm_;  // of the thread alone, once it runs
  std::mutex mutex_;
  std::condition_variable changed_;
  FarmWorker worker_;
  std::vector<FarmDelivery> held_;
  std::deque<std::pair<double, int64_t>> counts_;
  std::string why_ended_;
  std::thread thread_;
};

class Server {
 public:
  Server(const FarmService& service, Measurer& measurer)
      : service_(service), farm_(service.address, service.timing, service.stop), measurer_(measurer) {}

  void Serve() {
    Heart heart(service_);
    heart_ = &heart;
    farm_.SetPatience(kForEver);
    try {
      farm_.Tidy(service_.worker.class_name);
      while (!IsStopped(service_.stop)) {
        heart.CheckAlive();
        Take();
        heart.Hold({waiting_.begin(), waiting_.end()});
        while (!waiting_.empty() && !IsStopped(service_.stop)) Next();
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInterrupted) throw;
    }
    farm_.SetPatience(0);
    GiveBack();
  }

  // When the heart no longer beats: nobody else will say that the worker is gone.
  void Leave() {
    try {
      farm_.Leave(service_.worker);
    } catch (const Error&) {  // it will be noticed
    }
  }

 private:
  void Say(const std::string& text) const {
    if (service_.on_event) service_.on_event(text);
  }

  void Take() {
    constexpr double kWaitSeconds = 0.5;
    const FarmWorker& worker = service_.worker;
    const FarmTiming& timing = service_.timing;
    if (NowSeconds() - reclaimed_ > timing.heartbeat_seconds) {
      for (const std::string& stream :
           {Farm::WorkerStream(worker.id), Farm::ClassStream(worker.class_name)}) {
        if (auto one = farm_.Reclaim(worker, stream)) waiting_.push_back(*std::move(one));
      }
      // Where one was left behind there may be more.
      if (!waiting_.empty()) return;
      reclaimed_ = NowSeconds();
    }
    for (FarmDelivery& one : farm_.Take(worker, std::min(kWaitSeconds, timing.heartbeat_seconds)))
      waiting_.push_back(std::move(one));
  }

  // Answers the first of those that wait, whatever it is.
  void Next() {
    const FarmDelivery delivery = waiting_.front();
    if (IsJob(delivery.fields)) {
      NextJob(delivery);
    } else {
      NextTrial(delivery);
    }
    waiting_.pop_front();
    heart_->Hold({waiting_.begin(), waiting_.end()});
    heart_->Update([](FarmWorker& worker) { worker.doing = "idle"; });
  }

  void NextJob(const FarmDelivery& delivery) {
    FarmJobReport last;
    last.worker = service_.worker.id;
    FarmJob job;
    try {
      job = FarmJobFrom(delivery.fields);
      last.id = job.id;
      if (farm_.IsOpen(job) && !DoJob(job, delivery, last)) return Drop(job, delivery);
    } catch (const FileLost&) {
      return Drop(job, delivery);
    } catch (const Error& error) {
      if (IsOurs(error)) throw;
      heart_->Update([](FarmWorker& worker) { ++worker.refused; });
      Say(fmt::format("refused a job: {}", error.what()));
      last = {last.id, last.worker, last.number + 1};
      last.refused = std::string(error.what()).substr(0, kMaxRefused);
    }
    last.last = true;
    farm_.Commit(delivery, job.coordinator, last);
  }

  // False when nobody wants it any more.
  bool DoJob(const FarmJob& job, const FarmDelivery& delivery, FarmJobReport& report) {
    MeasureSession session;
    session.cpu = job.target;
    if (const std::string why = WhyNotMeasuredOn(service_.worker.target, session); !why.empty())
      throw Error(ErrorCode::kUsage, why);
    const auto found = service_.jobs.find(job.kind);
    if (found == service_.jobs.end()) throw Error(ErrorCode::kUsage, "does no " + job.kind);
    if (delivery.times > kMaxDeliveries) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("given to {} workers, none of which finished it", kMaxDeliveries));
    }
    heart_->Update([&](FarmWorker& worker) { worker.doing = job.kind; });
    const auto file = [&](const std::string& name) {
      const auto at = job.files.find(name);
      if (at == job.files.end()) throw Error(ErrorCode::kUsage, fmt::format("has no file {}", name));
      std::optional<std::string> bytes = farm_.GetFile(job.coordinator, name, at->second);
      if (!bytes) throw FileLost();
      return *std::move(bytes);
    };
    const auto so_far = [&](const FarmJobResult& result) {
      heart_->CheckAlive();
      PutResult(job, result, report);
      return farm_.Report(job.coordinator, report);
    };
    const auto result = found->second({job, service_.stop, service_.timing.heartbeat_seconds, file, so_far});
    if (result) PutResult(job, *result, report);
    return result.has_value();
  }

  void PutResult(const FarmJob& job, const FarmJobResult& result, FarmJobReport& report) {
    ++report.number;
    report.text = result.text;
    report.files.clear();
    for (const auto& [name, bytes] : result.files) {
      farm_.PutFile(job.coordinator, ReportFile(name, report), bytes);
      report.files[name] = std::ssize(bytes);
    }
  }

  // What nobody wants, or what was lost in part, which its coordinator notices.
  void Drop(const FarmJob& job, const FarmDelivery& delivery) {
    Say("a job is not wanted any more");
    farm_.Forget(job.coordinator, {{job.id}});
    farm_.Commit(delivery, job.coordinator, FarmJobReport{job.id, service_.worker.id});
  }

  void NextTrial(const FarmDelivery& delivery) {
    FarmAnswer answer;
    std::string coordinator;
    Message message = ErrorMessage{};
    Target target = service_.worker.target;
    bool open = true;
    try {
      const FarmTrial trial = FarmTrialFrom(delivery.fields);
      answer.id = trial.id;
      coordinator = trial.coordinator;
      open = farm_.IsOpen(trial);
      if (open) message = Measure(trial, delivery, target);
    } catch (const Error& error) {
      if (IsOurs(error)) throw;
      Refuse(message, error.what());
    }
    if (open) {
      answer.worker = service_.worker.id;
      answer.ready = MessageToText(ReadyMessage{target});
      answer.answer = MessageToText(message);
    }
    const bool first = farm_.Commit(delivery, coordinator, answer);
    if (open && !first && !coordinator.empty())
      Say("a trial was answered by somebody else, or is not wanted any more");
  }

  // Throws Error(kUsage) for what is no trial.
  Message Measure(const FarmTrial& trial, const FarmDelivery& delivery, Target& target) {
    const Message session_message = MessageFromText(trial.session),
                  trial_message = MessageFromText(trial.trial);
    const auto* session = std::get_if<SessionMessage>(&session_message);
    const auto* asked = std::get_if<TrialMessage>(&trial_message);
    if (session == nullptr || asked == nullptr)
      throw Error(ErrorCode::kUsage, "neither a session nor a trial");
    if (const std::string why = WhyRefused(session->session, target); !why.empty())
      throw Error(ErrorCode::kUsage, why);
    target = CapIsa(target, session->session.cpu.isa);
    if (delivery.times > kMaxDeliveries) {
      TrialResult lost;
      lost.status = TrialStatus::kWorkerLost;
      lost.detail = fmt::format("given to {} workers, none of which answered", kMaxDeliveries);
      return ResultMessage{asked->ticket, lost};
    }
    return Run(session->session, *asked, trial.session, target);
  }

  Message Run(MeasureSession session, const TrialMessage& asked, const std::string& session_text,
              Target& target) {
    heart_->Update([&](FarmWorker& worker) {
      const std::string workload = WorkloadToString(session.workload);
      worker.doing = fmt::format("{} of {}", asked.trial.template_name, workload).substr(0, kMaxShown);
    });
    int64_t& memory_bytes = session.limits.memory_bytes;
    if (memory_bytes <= 0 || memory_bytes > PhysicalBytes()) memory_bytes = PhysicalBytes();
    TrialResult result;
    try {
      if (session_text != begun_) {
        begun_.clear();
        measurer_.Begin(session);
        begun_ = session_text;
      }
      measurer_.Submit(asked.trial);
      result = measurer_.Next().second;
    } catch (const Error& error) {
      begun_.clear();
      if (error.code() != ErrorCode::kEnvironment) throw;
      Message message = ErrorMessage{};
      Refuse(message, error.what());
      return message;
    }
    target = result.target;
    heart_->Update([&](FarmWorker& worker) {
      ++worker.trials;
      worker.failures += result.status != TrialStatus::kOk;
    });
    return ResultMessage{asked.ticket, std::move(result)};
  }

  void Refuse(Message& message, const std::string& why) {
    heart_->Update([](FarmWorker& worker) { ++worker.refused; });
    Say("refused a trial: " + why);
    message = ErrorMessage{why};
  }

  void GiveBack() {
    try {
      for (; !waiting_.empty(); waiting_.pop_front()) farm_.GiveBack(waiting_.front());
    } catch (const Error&) {  // somebody will claim them
    }
  }

  const FarmService& service_;
  Farm farm_;
  Measurer& measurer_;
  Heart* heart_ = nullptr;
  std::deque<FarmDelivery> waiting_;  // the first may be running
  std::string begun_;                 // the measurer's session, as it was read
  double reclaimed_ = 0;              // when there was nothing left to claim
};

}  // namespace

void ServeFarm(const FarmService& service, Measurer& measurer) {
  Server server(service, measurer);
  server.Serve();
  server.Leave();
}

}  // namespace tilesmith
