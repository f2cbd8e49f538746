// Dealing the stages of a program to a team, one after the other, so that a thread that is late holds up
// nobody for long.
//
// Share t of a stage is thread t's, which takes it in a few pieces, from the front. A machine may take a core
// away for milliseconds: whoever has done its own share and has waited about as long as that took, and never
// less than kPatienceSeconds, takes the last pieces of those that are late, the nearest first. A stage is
// over when its last piece is done, not when all have arrived: a thread that slept through it finds nothing
// left. While all threads run nobody is that late, so nothing changes hands. Source: original, after work
// stealing (Blumofe and Leiserson, Scheduling Multithreaded Computations by Work Stealing, JACM 46, 1999).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "layouts/base/split.h"
#include "layouts/base/thread_team.h"

namespace tilesmith {

constexpr double kPatienceSeconds = 50e-6;

class TaskDealer {
 public:
  TaskDealer(int threads, WaitPolicy policy);

  // The number of the next stage. Asked by one thread, before the team starts on a program.
  unsigned next_stage() const { return stage_.now(); }
  // Every thread calls it for every stage, with the same arguments but `thread`, in the order of `number`,
  // which counts up from next_stage(). Calls run(TaskRange) for what this thread gets of it, and returns when
  // all of the stage is done. `run` must not throw. Allocates nothing.
  template <typename Run>
  void RunStage(unsigned number, const TaskGrid& grid, Split split, int thread, const Run& run);

 private:
  // The pieces of a share that nobody has taken yet, in one word: of which stage, and which.
  struct alignas(64) Pieces {
    std::atomic<uint64_t> left{0};
  };
  enum class Side { kFront, kBack };

  static constexpr int kShareWork = 8;  // and the most pieces of a share

  static double Now();
  // The index of a piece of thread `owner`'s share of `count` pieces; -1 when none is left.
  int Take(unsigned number, int owner, int count, Side side);
  // So much work of this stage is done; who does the last of it ends the stage.
  void Finish(int work);
  // How far into a share's work piece `piece` of `count` begins. Every share counts as kShareWork.
  static int WorkBefore(int piece, int count) { return kShareWork * piece / count; }

  const int threads_;
  Generation stage_;
  alignas(64) std::atomic<int> done_{0};
  const std::unique_ptr<Pieces[]> pieces_;  // by thread
};

template <typename Run>
void TaskDealer::RunStage(unsigned number, const TaskGrid& grid, Split split, int thread, const Run& run) {
  if (threads_ == 1) {
    const Share all(grid, split, 0, 1);
    all.ForEachRange(0, all.tasks(), 0, run);
    return;
  }
  const auto work = [&](int owner, Side side, int most) {
    const Share share(grid, split, owner, threads_);
    // An empty share has a piece as well, so that somebody can say it is done.
    const int count = grid.at_once ? 1 : static_cast<int>(std::clamp<int64_t>(share.tasks(), 1, kShareWork));
    int taken = 0, done = 0;
    for (; taken < most; ++taken) {
      const int piece = Take(number, owner, count, side);
      if (piece < 0) break;
      share.ForEachRange(share.tasks() * piece / count, share.tasks() * (piece + 1) / count, thread, run);
      done += WorkBefore(piece + 1, count) - WorkBefore(piece, count);
    }
    if (done > 0) Finish(done);
    return taken;
  };
  const double begin = Now();
  work(thread, Side::kFront, kShareWork);
  if (stage_.now() != number) return;
  const double own_end = Now(), patient_until = own_end + std::max(kPatienceSeconds, own_end - begin);
  stage_.WaitWhile(number, [&] {
    if (Now() < patient_until) return;
    for (int away = 1; away < threads_; ++away) {
      for (const int owner : {thread - away, thread + away}) {
        if (owner < 0 || owner >= threads_) continue;
        while (work(owner, Side::kBack, 1) > 0) {
        }
      }
    }
  });
}

}  // namespace tilesmith
