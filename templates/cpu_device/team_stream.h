// Launches one after the other on a team of threads.
#pragma once

#include <span>
#include <vector>

#include "layouts/base/stop_flag.h"
#include "templates/cpu_device/task_dealer.h"
#include "templates/cpu_device/team_pace.h"
#include "templates/device/device.h"

namespace tilesmith {

class TeamStream final : public Stream {
 public:
  // Starts the team, so that running allocates nothing. `stop`, which may be null, outlives the stream.
  TeamStream(int threads, WaitPolicy wait, const StopFlag* stop);

  // Every launch in one parallel region, its stages one after the other; durations are as thread 0 sees them.
  // Runs whose durations nobody asks for are dealt in whatever way is fastest just now (team_pace.h).
  void Run(std::span<const Launch> program, std::span<double> seconds) override;
  // In even shares.
  void RunByAll(std::span<const Launch> program) override;

 private:
  // What the thread that waited most waited.
  TeamWaits RunDealt(TaskDealer::Dealing dealing, std::span<const Launch> program, std::span<double> seconds);
  void RunAlone(std::span<const Launch> program, std::span<double> seconds) const;

  struct alignas(64) ThreadWaits {
    TeamWaits waits;
  };

  const int threads_;
  const StopFlag* const stop_;
  TaskDealer dealer_;
  TeamPace pace_;
  std::vector<ThreadWaits> waits_;
};

}  // namespace tilesmith
