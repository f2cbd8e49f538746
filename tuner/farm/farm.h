// A farm: machines that measure for whoever asks, and a Redis between them. What both sides do there, one
// function each; what they do it for is farm_measurer.h's and farm_worker.h's.
//
// A trial lies in a stream until a worker takes it, which then holds it: the entry is pending, and no idler
// than the worker's last heartbeat. What is idle for longer is a dead worker's, and somebody else's to claim.
// A trial is open until its first answer is committed, which closes it, puts the answer into the stream of
// whoever asked and takes the trial out of its own, all at once. So a trial may run twice, but is answered
// once; and whoever misses a trial that is neither open nor answered has lost it with the Redis, and asks
// again. Streams are bounded: those of trials by kMaxQueued, those of answers by what is open.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tuner/farm/messages.h"
#include "tuner/farm/redis.h"

namespace tilesmith {

// All sides of a farm have to agree on these; tests are in more of a hurry.
struct FarmTiming {
  double heartbeat_seconds = 1;
  double dead_seconds = 5;  // a worker that is silent for so long
  double coordinator_seconds =
      60;                        // what a coordinator that is silent for so long has asked for is forgotten
  double patience_seconds = 60;  // of a coordinator with a farm out of reach or without workers
};

// A trial that is delivered so often and never answered takes its workers down.
constexpr int kMaxDeliveries = 3;
constexpr int kMaxQueued = 4096;  // trials in a stream

// A trial that a worker holds: where it lies, and what is said there.
struct FarmDelivery {
  std::string stream, entry;
  FarmFields fields;
  int64_t times = 1;  // this one included
};

std::string NewCoordinatorId();

// One thread at a time. All functions throw as Redis::Call does.
class Farm {
 public:
  // `stop`, which may be null, outlives it.
  Farm(FarmAddress address, const FarmTiming& timing, const StopFlag* stop)
      : timing_(timing), redis_(std::move(address), stop) {}

  // As Redis::SetPatience.
  void SetPatience(double seconds) { redis_.SetPatience(seconds); }
  const FarmAddress& address() const { return redis_.address(); }
  const FarmTiming& timing() const { return timing_; }

  // For all.
  std::vector<FarmWorker> Workers();
  // The streams of trials.
  static std::string ClassStream(const std::string& class_name);
  static std::string WorkerStream(const std::string& worker);

  // For workers. A heartbeat, which keeps what is held; when the class is of other machines, nothing happens
  // and what it is of is returned.
  std::optional<std::string> Announce(const FarmWorker& worker, std::span<const FarmDelivery> held);
  void Leave(const FarmWorker& worker);
  void Tidy(const std::string& class_name);
  // Waits so long for trials of the worker's own and for one of its class.
  std::vector<FarmDelivery> Take(const FarmWorker& worker, double seconds);
  // One of a worker that is dead, if there is any.
  std::optional<FarmDelivery> Reclaim(const FarmWorker& worker, const std::string& stream);
  bool IsOpen(const FarmTrial& trial) { return IsOpen(trial.coordinator, trial.id); }
  bool IsOpen(const FarmJob& job) { return IsOpen(job.coordinator, job.id); }
  // Whether it was the first answer.
  bool Commit(const FarmDelivery& delivery, const std::string& coordinator, const FarmAnswer& answer) {
    return Commit(delivery, coordinator, answer.id, ToFields(answer));
  }
  bool Commit(const FarmDelivery& delivery, const std::string& coordinator, const FarmJobReport& report) {
    return Commit(delivery, coordinator, report.id, ToFields(report));
  }
  // For a job that is not over. False when nobody wants it any more.
  bool Report(const std::string& coordinator, const FarmJobReport& report);
  void GiveBack(const FarmDelivery& delivery);

  // For coordinators. False when the stream is full.
  bool Submit(const std::string& stream, const FarmTrial& trial) {
    return Submit(stream, trial.coordinator, trial.id, ToFields(trial));
  }
  bool Submit(const std::string& stream, const FarmJob& job) {
    return Submit(stream, job.coordinator, job.id, ToFields(job));
  }
  std::set<std::string> Open(const std::string& coordinator);
  void Forget(const std::string& coordinator, std::span<const std::string> ids);
  // The fields of the answers behind the entry `after`, "0" being before all, each with its entry; waits so
  // long for one.
  std::vector<std::pair<std::string, FarmFields>> Answers(const std::string& coordinator,
                                                          const std::string& after, double seconds);
  void Trim(const std::string& coordinator, std::span<const std::string> entries);
  void End(const std::string& coordinator);

  // For both: files of a coordinator's job, which are forgotten with it.
  void PutFile(const std::string& coordinator, const std::string& name, std::string_view bytes);
  // nullopt: it is not there, or not of that size.
  std::optional<std::string> GetFile(const std::string& coordinator, const std::string& name, int64_t bytes);
  // So that it stays for as long as answers do.
  void KeepFile(const std::string& coordinator, const std::string& name, int64_t bytes);
  void RemoveFile(const std::string& coordinator, const std::string& name, int64_t bytes);

 private:
  bool IsOpen(const std::string& coordinator, const std::string& id);
  bool Commit(const FarmDelivery& delivery, const std::string& coordinator, const std::string& id,
              const FarmFields& answer);
  bool Submit(const std::string& stream, const std::string& coordinator, const std::string& id,
              const FarmFields& fields);
  RedisReply Run(const char* script, const std::vector<std::string>& keys,
                 const std::vector<std::string>& arguments);

  const FarmTiming timing_;
  Redis redis_;
};

}  // namespace tilesmith
