// A coordinator's side of a job (FarmJob): one machine of a class does it as a whole.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "tuner/farm/farm.h"

namespace tilesmith {

struct FarmJobRequest {
  FarmAddress address;
  FarmTiming timing;
  std::string class_name;
  FarmJob job;                                              // kind, target and text; the rest is filled in
  std::function<void(const std::string&)> on_warning = {};  // may be empty
  const StopFlag* stop = nullptr;
};

// What its worker tells, with the contents of its files.
struct FarmJobNews {
  std::string worker, text;
  std::map<std::string, std::string> files;
  bool last = false;
};

// Whoever of the class is free takes the job. When that machine is lost, or the Redis with what was in it,
// another one begins anew, at most kMaxDeliveries in all. All functions throw Error(kEnvironment) when the
// class has no workers, or Redis is out of reach, for longer than the timing's patience.
class FarmJobRun {
 public:
  explicit FarmJobRun(FarmJobRequest request);
  ~FarmJobRun();  // a job that is not over is forgotten, and its worker stops
  FarmJobRun(const FarmJobRun&) = delete;
  FarmJobRun& operator=(const FarmJobRun&) = delete;

  // A file of the job, or its contents from now on: who begins anew finds them. Throws Error(kUsage) when all
  // of them are too large.
  void Put(const std::string& name, std::string bytes);
  // Calls `take` with what the worker tells, the last news included, with which it returns. What `take`
  // refuses by Error(kUsage) was none; a job that ends so begins anew. Throws Error(kEnvironment) when the
  // job is refused or lost with all its workers, and Error(kInterrupted) when it is stopped.
  void Run(const std::function<void(const FarmJobNews&)>& take);

 private:
  void Submit();
  void BeginAnew();
  bool Receive(const std::function<void(const FarmJobNews&)>& take, double seconds);
  bool Enter(const FarmFields& fields, const std::function<void(const FarmJobNews&)>& take);
  bool EnterGarbled(const std::string& why, bool last);
  void Look();
  bool IsLost();
  void CheckStop() const;
  void Warn(const std::string& text) const;

  FarmJobRequest request_;
  Farm farm_;
  std::map<std::string, std::string> files_;
  std::string worker_;  // that was heard of since the job was submitted last
  bool worker_lost_ = false;
  std::string read_ = "0";                   // the last news
  double looked_ = 0, without_workers_ = 0;  // since when; 0: not
  int submitted_ = 0, garbled_ = 0, lost_ = 0;
};

}  // namespace tilesmith
