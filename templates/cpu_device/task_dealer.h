// Deals the tasks of one stage after the other to the threads of a team.
//
// In shares each thread does its own and waits for the others or, where the next stage allows that, only for
// the threads beside it. In pieces it takes its share piece
// by piece from the front, half of what is left at a time, and once that is done takes, half at a time and
// from the back, what is left of the shares of threads near it: where a thread is slow (another program's, a
// smaller core, two of the team on one core) or does not come at all, the others do its work. A stage ends
// with its last task, not when all threads have arrived, so that who comes late goes on where the others are
// by then. Pieces cost some 50 ns each, and kernels that keep things from task to task prepare them again for
// each; whether they pay is for the caller to find out (team_stream.h).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "layouts/base/split.h"
#include "layouts/base/thread_team.h"

namespace tilesmith {

// Seconds that a thread waited for others in a run, moments left out, and how much of them it no longer spun,
// since others were late.
struct TeamWaits {
  double seconds = 0;
  double late_seconds = 0;
};

class TaskDealer {
 public:
  enum class Dealing { kShares, kPieces };
  // Whose shares of a stage must be done before a thread goes on to the next one; pieces are all's.
  enum class WaitFor { kAll, kNeighbours };
  // Where a thread of the team is in the sequence of all stages in pieces.
  struct Seat {
    int thread = 0;
    uint64_t stage = 0;  // those before it
    uint64_t tasks = 0;  // of all those
    TeamWaits waits = {};
  };

  TaskDealer(int threads, WaitPolicy wait)
      : threads_(threads), generation_(wait), lefts_(static_cast<size_t>(threads)) {
    for (int thread = 0; thread < threads; ++thread) shares_done_.emplace_back(wait);
  }

  // Where thread `thread` begins a run. A run is the same sequence of DoStage by every thread of the team,
  // behind the one before.
  Seat Begin(int thread) const { return {thread, stages_, tasks_, {}}; }
  // The run is over for all threads, and ended here.
  void End(const Seat& seat) { stages_ = seat.stage, tasks_ = seat.tasks; }

  // Calls run(TaskRange), which must not throw, for this thread's part of the seat's stage, waits, and moves
  // the seat on. All threads say the same grid, split, dealing and wait, at the last stage of a run for all.
  template <typename Run>
  void DoStage(const TaskGrid& grid, Split split, Dealing dealing, WaitFor wait, Seat& seat, const Run& run);

 private:
  struct Pieces {
    int64_t begin = 0, end = 0;
  };
  // What is left of a thread's share of a stage, in pieces.
  struct alignas(64) Left {
    std::atomic<uint64_t> packed{0};  // the stage, 8 bits of begin, 8 of end
  };
  static constexpr int64_t kMaxPieces = 255;
  static constexpr int kMaxOthers = 8;  // that a thread helps

  // Of `owner`'s share, which has `pieces`, half of what is left: the front for itself, the back for others.
  std::optional<Pieces> Take(int owner, bool own, uint64_t stage, int64_t pieces);
  // The `hop`-th nearest to a thread, itself first; none behind the ends of the team.
  std::optional<int> Near(int thread, int hop) const;
  template <typename Run>
  void DoShare(const TaskGrid& grid, Split split, WaitFor wait, Seat& seat, const Run& run);
  template <typename Run>
  void DoPieces(const TaskGrid& grid, Split split, Seat& seat, const Run& run);
  static void Wait(Generation& generation, unsigned wanted, Seat& seat);

  const int threads_;
  uint64_t stages_ = 0, tasks_ = 0;            // before the next run
  std::deque<Generation> shares_done_;         // by thread
  Generation generation_;                      // stages done in pieces
  std::vector<Left> lefts_;                    // by thread
  alignas(64) std::atomic<uint64_t> done_{0};  // tasks of these
};

template <typename Run>
void TaskDealer::DoStage(const TaskGrid& grid, Split split, Dealing dealing, WaitFor wait, Seat& seat,
                         const Run& run) {
  if (dealing == Dealing::kShares)
    DoShare(grid, split, wait, seat, run);
  else
    DoPieces(grid, split, seat, run);
}

template <typename Run>
void TaskDealer::DoShare(const TaskGrid& grid, Split split, WaitFor wait, Seat& seat, const Run& run) {
  const Share share(grid, split, seat.thread, threads_);
  share.ForEachRange(0, share.tasks(), seat.thread, run);
  Generation& own = shares_done_[static_cast<size_t>(seat.thread)];
  own.Advance();
  const unsigned wanted = own.now();
  const int beside = wait == WaitFor::kAll ? threads_ : 1;
  const int last = std::min(seat.thread + beside, threads_ - 1);
  for (int thread = std::max(seat.thread - beside, 0); thread <= last; ++thread) {
    if (thread != seat.thread) Wait(shares_done_[static_cast<size_t>(thread)], wanted, seat);
  }
}

template <typename Run>
void TaskDealer::DoPieces(const TaskGrid& grid, Split split, Seat& seat, const Run& run) {
  const auto all = static_cast<uint64_t>(grid.tasks());
  if (all == 0) return;
  uint64_t done = 0;
  for (int hop = 0; hop <= 2 * kMaxOthers; ++hop) {
    const std::optional<int> owner = Near(seat.thread, hop);
    if (!owner.has_value()) continue;
    const Share share(grid, split, *owner, threads_);
    const int64_t unit = (share.tasks() + kMaxPieces - 1) / kMaxPieces;
    const int64_t pieces = unit == 0 ? 0 : (share.tasks() + unit - 1) / unit;
    while (const auto taken = Take(*owner, hop == 0, seat.stage, pieces)) {
      const int64_t first = taken->begin * unit, last = std::min(taken->end * unit, share.tasks());
      share.ForEachRange(first, last, seat.thread, run);
      done += static_cast<uint64_t>(last - first);
    }
  }
  seat.tasks += all;
  if (done > 0 && done_.fetch_add(done, std::memory_order_acq_rel) + done == seat.tasks)
    generation_.Advance();
  Wait(generation_, static_cast<unsigned>(++seat.stage), seat);
}

}  // namespace tilesmith
