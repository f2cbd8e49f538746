// Threads: teams of them, light barriers inside of what a team does, and the even split of tasks.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
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
// Throws Error(kUsage) for an unknown name.
WaitPolicy ParseWaitPolicy(std::string_view name);

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
  // The same asleep from the first moment on. Precondition: the policy is kSleep.
  void SleepUntil(unsigned wanted);

 private:
  static constexpr int kPausesBeforeYield = 1 << 14;

  static bool IsBefore(unsigned value, unsigned wanted) { return static_cast<int>(value - wanted) < 0; }
  // One step of waiting, the `step`-th; those of spinning are many pauses.
  void Pause(unsigned wanted, int step);

  const WaitPolicy policy_;
  alignas(64) std::atomic<unsigned> value_{0};
};

// The cores the process was given, ascending, as they were when this was first asked for; pinning asks first.
// Where AArch64 has big and little ones, those that a team with equal shares is fastest on.
const std::vector<int>& ProcessCores();

// Sense-counting spin barrier for threads that are all running; about 100 ns on two cores, where a fresh
// region costs twice that or more.
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

// Threads that work together: the one that calls Run, which is thread 0, and others that belong to the team,
// are started when a region first needs them, and stay. Between regions they spin for a while, and then
// sleep. Behind a fork the child's team starts threads of its own, since the parent's are not there.
//
// One region at a time.
class ThreadTeam {
 public:
  // What every thread of a region calls.
  struct Region {
    void (*call)(const void* body, int thread);
    const void* body;
  };

  // `awake_seconds`: that threads spin for between regions, unless they are more than the process has cores.
  // A core whose thread spins is kept from others.
  explicit ThreadTeam(double awake_seconds) : awake_seconds_(awake_seconds) {}
  // Somebody else's threads: `lend` calls a region's body for all of its threads, which may wait for each
  // other, and returns when all have. The team starts none of its own, and pins none.
  using Lend = void (*)(const void* pool, int threads, Region region);
  ThreadTeam(Lend lend, const void* pool) : awake_seconds_(0), lend_(lend), pool_(pool) {}
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  // Returns when all `threads` have. Allocates nothing once they are there. Throws Error(kEnvironment), with
  // nothing called, where one cannot be started.
  void Run(int threads, Region region);
  // Thread i of later regions is pinned to cores[i], as far as there are any; the others go wherever the
  // process may.
  void PinTo(std::span<const int> cores) { cores_.assign(cores.begin(), cores.end()); }
  std::span<const int> cores() const { return cores_; }
  // Threads that spin for the next region sleep now.
  void Rest() { sleeps_at_once_.store(true, std::memory_order_relaxed); }

 private:
  // Of one of the team's own threads. A region that it is not in does not touch it.
  struct alignas(64) Worker {
    ThreadTeam* team;
    int thread;
    int pinned_to;                         // when it starts, as who starts it is
    Generation calls{WaitPolicy::kSleep};  // to regions; the last one may be the team's end
    pthread_t handle = {};
  };

  void ForgetParents();
  void Start(int threads);
  void Work(Worker& self);
  void AwaitCall(Worker& self, unsigned call) const;
  void Place(int thread) const;

  const double awake_seconds_;
  const Lend lend_ = nullptr;
  const void* const pool_ = nullptr;
  std::vector<int> cores_;
  std::vector<std::unique_ptr<Worker>> workers_;  // thread 1 and on
  unsigned forks_ = 0;                            // ForkCount() when they were started
  Region region_ = {};                            // without a call: the team is over
  std::atomic<bool> sleeps_at_once_{false};
  alignas(64) std::atomic<int> working_{0};  // of the team's own threads, in a region
  Generation done_{WaitPolicy::kSleep};      // regions
};

// The team of the calling thread: that of the innermost TeamScope, else one of its own, which is made for who
// measures: its threads stay awake for some milliseconds.
ThreadTeam& CurrentTeam();

// While it lives, the calling thread's regions are this team's. The team outlives it.
class TeamScope {
 public:
  explicit TeamScope(ThreadTeam& team);
  ~TeamScope();
  TeamScope(const TeamScope&) = delete;
  TeamScope& operator=(const TeamScope&) = delete;

 private:
  ThreadTeam* const before_;
};

// Pins the calling thread there, if it is not there by this or PinTeam.
void KeepOn(int core);

template <typename Body>
ThreadTeam::Region RegionOf(const Body& body) {
  return {[](const void* of, int thread) { (*static_cast<const Body*>(of))(thread); }, &body};
}

// Calls body(int thread) on `threads` threads of the calling thread's team, thread 0 being the caller, all
// where the team is pinned. Denormal numbers are zero to body (FlushDenormals). body must not throw, nor call
// this again for more than one thread. Allocates nothing once the team has so many threads. Throws
// Error(kEnvironment), with body never called, when they cannot be started.
template <typename Body>
void RunOnTeam(int threads, const Body& body) {
  if (threads == 1) {
    const FlushDenormals flush;
    body(0);
    return;
  }
  const auto flushed = [&body](int thread) {
    const FlushDenormals flush;
    body(thread);
  };
  CurrentTeam().Run(threads, RegionOf(flushed));
}

// Whether the calling thread is in a region of more than one thread.
bool IsInRegion();

// Calls body(int64_t index) for every index below `count`, on so many threads, one for each core of the
// process if not said otherwise, whichever is free next; in a region, on this thread. The first thing that it
// throws is thrown on; calls that have not begun are left out then.
template <typename Body>
void ForEachIndex(int64_t count, const Body& body, int64_t threads = std::ssize(ProcessCores())) {
  std::atomic<int64_t> next{0};
  FirstError error;
  const auto take = [&](int) {
    for (int64_t index = next++; index < count && !error.raised(); index = next++) {
      try {
        body(index);
      } catch (...) {
        error.Capture();
      }
    }
  };
  threads = std::min(count, threads);
  if (threads <= 1 || IsInRegion())
    take(0);
  else
    CurrentTeam().Run(static_cast<int>(threads), RegionOf(take));
  error.Rethrow();
}

// Runs all stages of a kernel in one parallel region. The first thing that a task throws is thrown on, when
// all threads are done; the tasks behind it are left out.
void RunKernel(const Kernel& kernel, const KernelArgs& args, int threads, Split split = Split::kEven);

// Runs one thread's share of every stage; every thread of the team calls it with the same arguments. What a
// task throws is captured, and the tasks behind it are left out.
void RunShare(const Kernel& kernel, const KernelArgs& args, int thread, int threads, SpinBarrier& barrier,
              FirstError& error, Split split = Split::kEven);

// Pins the threads of the calling thread's team, one to each core this process was given (thread i to the
// i-th), or to those given here. Child processes inherit the calling thread's mask: UnpinThisThread, which
// gives the calling thread all of the process's cores back, and pins its team no more, comes before starting
// one.
void PinTeam(int threads);
void PinTeam(std::span<const int> cores);
void UnpinThisThread();

// Where the calling thread may run, and its team is pinned; and as it was.
struct TeamPinning {
  cpu_set_t mask;
  std::vector<int> cores;
};
TeamPinning CurrentPinning();
void Restore(const TeamPinning& pinning);

}  // namespace tilesmith
