// Threads: one OpenMP parallel region, light barriers inside it, and the even split of tasks.
#pragma once

#include <omp.h>
#include <sched.h>

#include <atomic>
#include <span>
#include <string_view>
#include <vector>

#include "layouts/base/first_error.h"
#include "layouts/base/flush_denormals.h"
#include "layouts/base/kernel.h"

namespace tilesmith {

// What a thread does that waits for others of its team. Waking one that sleeps takes some 50 us, a spinning
// one goes on at once, but keeps a core from whoever else could use it.
enum class WaitPolicy {
  kSpin,   // nothing else: for a machine that is ours alone
  kYield,  // spins for some 0.2 ms, then offers the core to others again and again
  kSleep,  // the same, and sleeps after a millisecond or so of that
};
inline constexpr WaitPolicy kWaitPolicies[] = {WaitPolicy::kSpin, WaitPolicy::kYield, WaitPolicy::kSleep};
// "spin", "yield", "sleep".
std::string_view WaitPolicyName(WaitPolicy policy);

// A number that grows, and threads that wait until it has.
class Generation {
 public:
  explicit Generation(WaitPolicy policy) : policy_(policy) {}

  unsigned now() const { return value_.load(std::memory_order_acquire); }
  // One thread at a time. What it did before is seen by those that wait.
  void Advance();
  // Until it is `wanted` or past it; numbers start over behind the largest.
  void WaitUntil(unsigned wanted);
  // The same for so many pauses, whatever the policy; whether it is.
  bool SpinUntil(unsigned wanted, int pauses = kPausesBeforeYield) const;

 private:
  static constexpr int kPausesBeforeYield = 1 << 14;

  static bool IsBefore(unsigned value, unsigned wanted) { return static_cast<int>(value - wanted) < 0; }
  // One step of waiting, the `step`-th; those of spinning are many pauses.
  void Pause(unsigned wanted, int step);

  const WaitPolicy policy_;
  alignas(64) std::atomic<unsigned> value_{0};
};

// Sense-counting spin barrier for threads that are all running; about 100 ns on two cores, where a fresh
// parallel region costs 0.6 us or more.
class SpinBarrier {
 public:
  explicit SpinBarrier(int threads, WaitPolicy policy = WaitPolicy::kSleep)
      : threads_(threads), generation_(policy) {}
  void Wait();

 private:
  const int threads_;
  alignas(64) std::atomic<int> arrived_{0};
  Generation generation_;
};

[[noreturn]] void ThrowTooFewThreads(int granted, int wanted);

// Where PinTeam pinned the teams of the calling thread; empty: nowhere.
std::span<const int> TeamCores();
// Pins this thread there, if it is not there by this or PinTeam.
void KeepOn(int core);

// Calls body(int thread) on `threads` threads of one OpenMP region, thread 0 being the caller. Threads are
// where PinTeam pinned them, those too that OpenMP has ended, as it does for a region of fewer threads, and
// started again, which have their creator's core otherwise. Denormal numbers are zero to body
// (FlushDenormals). body must not throw. Not reentrant from within body. Allocates nothing once the team
// exists. Throws Error(kEnvironment), with body never called, when OpenMP grants fewer threads
// (OMP_THREAD_LIMIT): barriers in body would wait for ever.
template <typename Body>
void RunOnTeam(int threads, const Body& body) {
  if (threads == 1) {
    const FlushDenormals flush;
    body(0);
    return;
  }
  int granted = threads;
  const std::span<const int> cores = TeamCores();
#pragma omp parallel num_threads(threads)
  {
    if (omp_get_num_threads() == threads) {
      const auto thread = static_cast<size_t>(omp_get_thread_num());
      if (thread < cores.size()) KeepOn(cores[thread]);
      const FlushDenormals flush;
      body(static_cast<int>(thread));
    } else if (omp_get_thread_num() == 0) {
      granted = omp_get_num_threads();
    }
  }
  if (granted != threads) ThrowTooFewThreads(granted, threads);
}

// Runs all stages of a kernel in one parallel region. The first thing that a task throws is thrown on, when
// all threads are done; the tasks behind it are left out.
void RunKernel(const Kernel& kernel, const KernelArgs& args, int threads, Split split = Split::kEven);

// Runs one thread's share of every stage; every thread of the team calls it with the same arguments. What a
// task throws is captured, and the tasks behind it are left out.
void RunShare(const Kernel& kernel, const KernelArgs& args, int thread, int threads, SpinBarrier& barrier,
              FirstError& error, Split split = Split::kEven);

// The cores the process was given, ascending, as they were when this was first asked for; pinning asks first.
const std::vector<int>& ProcessCores();

// Pins the team's threads, one to each core this process was given (thread i to the i-th), or to those given
// here, for all later teams of the calling thread. Child processes inherit the calling thread's mask:
// UnpinThisThread, which gives the calling thread all of the process's cores back, and pins its later teams
// no more, comes before starting one.
void PinTeam(int threads);
void PinTeam(std::span<const int> cores);
void UnpinThisThread();

// Where the calling thread may run, and its teams are pinned; and as it was.
struct TeamPinning {
  cpu_set_t mask;
  std::vector<int> cores;
};
TeamPinning CurrentPinning();
void Restore(const TeamPinning& pinning);

}  // namespace tilesmith
