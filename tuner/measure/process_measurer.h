// Measuring in a worker process, so that a config that crashes, hangs or eats all memory costs one trial.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tuner/measure/child_process.h"
#include "tuner/measure/measurer.h"
#include "tuner/measure/worker_link.h"

namespace tilesmith {

// Starts the worker when first needed, reuses it, and replaces a dead one. While a trial runs, this process
// waits in poll. One trial at a time, one thread at a time.
class ProcessMeasurer : public Measurer {
 public:
  // `worker_argv` runs MeasureWorkerMain on its standard input and output.
  explicit ProcessMeasurer(std::vector<std::string> worker_argv) : worker_argv_(std::move(worker_argv)) {}

  void Begin(const MeasureSession& session) override;
  // On other devices than the process's cores. A worker that fails at it is replaced: the trials will tell.
  void Prepare(std::span<const TrialRequest> requests) override;
  Ticket Submit(const TrialRequest& request) override;
  // A trial whose worker was killed from outside is repeated once; a second time it is worker_lost.
  std::pair<Ticket, TrialResult> Next() override;

  // The worker's process id, 0 when there is none.
  pid_t worker_pid() const { return worker_ ? worker_->process.pid() : 0; }
  int workers_started() const { return workers_started_; }

 private:
  struct Worker {
    explicit Worker(const std::vector<std::string>& argv) : process(argv), link(process.channel()) {}
    ChildProcess process;
    WorkerLink link;
  };
  template <typename Action>
  void OrFail(const Action& action);
  void StartWorker();
  TrialResult Judge(LinkedTrial trial, std::string& lost);

  std::vector<std::string> worker_argv_;
  std::optional<MeasureSession> session_;
  std::unique_ptr<Worker> worker_;
  int workers_started_ = 0;
  Ticket last_ = 0;
  std::optional<TrialRequest> in_flight_;
};

}  // namespace tilesmith
