// Launches one after the other on a team of threads.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "layouts/base/stop_flag.h"
#include "templates/cpu_device/task_dealer.h"
#include "templates/device/device.h"

namespace tilesmith {

// How a stream's runs are dealt to its threads: whichever way is fastest just now.
//
// Threads that share each step wait for each other at its end. Even shares are best where all threads are as
// fast: they keep what they wrote. Where one is slower (a smaller core, two threads on one core, another
// program on its core now and then) the others wait for it, step after step, and had better take some of its
// work: shares in pieces (task_dealer.h). Where other programs want the cores all the time, the system takes
// one away for milliseconds, and all wait for the task that its thread has in hand: with two compilers beside
// it a network may take ten times as long by two threads as by one. So a team that waited for much of some
// runs tries the other ways, and goes on with the fastest; while that is not even shares, those are tried
// again now and then. On a quiet machine nobody waits for long and nothing is tried.
enum class TeamWay { kShares, kPieces, kAlone };

class TeamPace {
 public:
  // The dealing that the next run is to have.
  TeamWay way() const { return way_; }
  // What the run that was just done took, and what the thread that waited most waited in it.
  void Took(double seconds, const TeamWaits& waits);

 private:
  enum class Phase { kWatching, kTrying, kStaying };
  // Some recent runs of one way.
  class Mean {
   public:
    void Add(double seconds);
    double seconds() const { return seconds_; }

   private:
    double seconds_ = 0;
    int count_ = 0;
  };

  Mean& mean(TeamWay way) { return means_[static_cast<size_t>(way)]; }
  bool tried(TeamWay way) const { return tried_[static_cast<size_t>(way)]; }
  void Watch(int rest);
  // The ways but the present one, whose seconds are known.
  void TryOthers(bool alone_too);
  void TryNext();
  void Choose();

  TeamWay way_ = TeamWay::kShares, stayed_ = TeamWay::kShares;
  Phase phase_ = Phase::kWatching;
  int runs_left_ = 0;                    // of this way; of kWatching: before others may be tried
  int waited_runs_ = 0, late_runs_ = 0;  // one behind the other
  bool alone_too_ = false;
  int stay_ = 0, rest_ = 0;  // runs of another way, and of even shares, before others are tried again
  std::array<Mean, 3> means_;
  std::array<bool, 3> tried_ = {};
};

class TeamStream final : public Stream {
 public:
  // Starts the team, so that running allocates nothing. `stop`, which may be null, outlives the stream.
  TeamStream(int threads, WaitPolicy wait, const StopFlag* stop);

  // Every launch in one parallel region, its stages one after the other; durations are as thread 0 sees them.
  // Runs whose durations nobody asks for are dealt in whatever way is fastest just now.
  void Run(std::span<const Launch> program, std::span<double> seconds) override;
  // In even shares.
  void RunByAll(std::span<const Launch> program) override;

 private:
  // The thread that waited most waited so long.
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
