// Measuring in a worker process, so that a config that crashes, hangs or eats all memory costs one trial.
#pragma once

#include <memory>
#include <optional>

#include "tuner/measure/child_process.h"
#include "tuner/measure/measurer.h"

namespace tilesmith {

// Starts the worker when first needed, reuses it, and replaces a dead one. While a trial runs, this process
// waits in poll. One thread at a time.
class ProcessMeasurer : public Measurer {
 public:
  // `worker_argv` runs MeasureWorkerMain on its standard input and output.
  explicit ProcessMeasurer(std::vector<std::string> worker_argv) : worker_argv_(std::move(worker_argv)) {}

  void Begin(const MeasureSession& session) override;
  // A trial whose worker was killed from outside is repeated once; a second time it is worker_lost.
  TrialResult Measure(const TrialRequest& request) override;

  // The worker's process id, 0 when there is none.
  pid_t worker_pid() const { return worker_ ? worker_->pid() : 0; }
  int workers_started() const { return workers_started_; }

 private:
  [[noreturn]] void Fail(const std::string& why);
  void StartWorker();
  bool SendSession(std::string& end);  // false when the worker is gone
  std::optional<std::string> Expect(double seconds, std::string& end);
  std::optional<TrialResult> TryTrial(const TrialRequest& request, std::string& lost);
  TrialResult Died(bool running, std::string& lost, bool& was_lost);

  std::vector<std::string> worker_argv_;
  std::optional<MeasureSession> session_;
  std::unique_ptr<ChildProcess> worker_;
  int workers_started_ = 0;
};

}  // namespace tilesmith
