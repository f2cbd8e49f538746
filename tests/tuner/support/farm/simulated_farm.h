// A farm whose machines are made up: workers whose trials take a time and have results that follow from the
// config, and a tuning of every config there is.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "tests/tuner/support/fake_template.h"
#include "tuner/farm/farm_measurer.h"
#include "tuner/farm/farm_worker.h"

namespace tilesmith {

// In more of a hurry than real ones, but not so that a busy machine makes a worker look dead.
inline FarmTiming QuickTiming() {
  return {.heartbeat_seconds = 0.1, .dead_seconds = 1, .coordinator_seconds = 5, .patience_seconds = 20};
}

inline Target FarmTarget() {
  Target target;
  target.model = "Farm CPU 3000";
  target.isa = Isa::kAvx2;
  target.cores = 4;
  return target;
}

inline FarmWorker FarmWorkerOf(const std::string& id, const std::string& class_name = "fast") {
  FarmWorker worker;
  worker.id = id;
  worker.class_name = class_name;
  worker.host = "host-of-" + id;
  worker.target = FarmTarget();
  worker.peak_flops = 1e11;
  return worker;
}

inline MeasureSession FarmSession() {
  MeasureSession session;
  session.workload = ParseWorkload("ic16ih8oc16oh8kh3ph1");
  session.cpu = FarmTarget();
  return session;
}

// What FakeTemplate says, after so long; the same whatever the limits.
class SleepingMeasurer : public Measurer {
 public:
  explicit SleepingMeasurer(double seconds) : seconds_(seconds) {}

  void Begin(const MeasureSession& session) override { session_ = session; }
  Ticket Submit(const TrialRequest& request) override {
    request_ = request;
    return 1;
  }
  std::pair<Ticket, TrialResult> Next() override {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds_));
    TrialResult result;
    result.seconds = FakeTemplate().Seconds(request_.config);
    result.sample_seconds.assign(5, result.seconds);
    result.target = CapIsa(FarmTarget(), session_.cpu.isa);
    ++trials;
    return {1, result};
  }

  int trials = 0;

 private:
  const double seconds_;
  MeasureSession session_;
  TrialRequest request_;
};

// A worker in a thread of this process.
class ThreadedWorker {
 public:
  ThreadedWorker(const FarmAddress& address, const FarmWorker& worker, double trial_seconds,
                 const std::map<std::string, FarmJobFunction>& jobs = {})
      : measurer_(trial_seconds), service_{address, QuickTiming(), worker, {}, &stop_, jobs}, thread_([this] {
          try {
            ServeFarm(service_, measurer_);
          } catch (const std::exception& error) {
            why_ended_ = error.what();
          }
        }) {}
  ~ThreadedWorker() { Stop(); }
  ThreadedWorker(const ThreadedWorker&) = delete;
  ThreadedWorker& operator=(const ThreadedWorker&) = delete;

  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  // Once it has stopped.
  int trials() const { return measurer_.trials; }
  const std::string& why_ended() const { return why_ended_; }

 private:
  StopFlag stop_ = false;
  SleepingMeasurer measurer_;
  const FarmService service_;
  std::string why_ended_;
  std::thread thread_;
};

inline FarmRequest FarmRequestOf(const FarmAddress& address, const std::string& class_name = "fast") {
  FarmRequest request;
  request.address = address;
  request.timing = QuickTiming();
  request.class_name = class_name;
  return request;
}

}  // namespace tilesmith
