// Launches one after the other on a team of threads.
#pragma once

#include <span>

#include "layouts/base/stop_flag.h"
#include "layouts/base/thread_team.h"
#include "templates/cpu_device/team_pace.h"
#include "templates/device/device.h"

namespace tilesmith {

class TeamStream final : public Stream {
 public:
  // Starts the team, so that running allocates nothing. `stop`, which may be null, outlives the stream.
  TeamStream(int threads, WaitPolicy wait, const StopFlag* stop);

  // Every launch in one parallel region, its stages one after the other; durations are as thread 0 sees them.
  // Runs whose durations nobody asks for are one thread's where the team's would take longer (team_pace.h).
  void Run(std::span<const Launch> program, std::span<double> seconds) override;
  void RunByAll(std::span<const Launch> program) override { RunBy(threads_, program, {}); }

 private:
  // Seconds that thread 0 waited for others that were late.
  double RunBy(int threads, std::span<const Launch> program, std::span<double> seconds);

  const int threads_;
  const StopFlag* const stop_;
  SpinBarrier barrier_;
  TeamPace pace_;
};

}  // namespace tilesmith
