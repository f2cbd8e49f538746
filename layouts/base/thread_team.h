// Threads: one OpenMP parallel region, light barriers inside it, and the even split of tasks.
#pragma once

#include <omp.h>

#include <atomic>
#include <span>
#include <vector>

#include "layouts/base/kernel.h"

namespace tilesmith {

// Sense-counting spin barrier for threads that are all running; about 100 ns on two cores, where a fresh
// parallel region costs 0.6 us or more. Yields after a while, so an oversubscribed machine still advances.
class SpinBarrier {
 public:
  explicit SpinBarrier(int threads) : threads_(threads) {}
  void Wait();

 private:
  const int threads_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<unsigned> generation_{0};
};

// Tasks [begin, end) of `thread` when `tasks` are split evenly and contiguously over `threads`.
TaskRange ShareOf(int64_t tasks, int thread, int threads);

[[noreturn]] void ThrowTooFewThreads(int granted, int wanted);

// Calls body(int thread) on `threads` threads of one OpenMP region, thread 0 being the caller. body must not
// throw. Not reentrant from within body. Allocates nothing once the team exists. Throws Error(kEnvironment),
// with body never called, when OpenMP grants fewer threads (OMP_THREAD_LIMIT): barriers in body would wait
// for ever.
template <typename Body>
void RunOnTeam(int threads, const Body& body) {
  if (threads == 1) {
    body(0);
    return;
  }
  int granted = threads;
#pragma omp parallel num_threads(threads)
  {
    if (omp_get_num_threads() == threads) {
      body(omp_get_thread_num());
    } else if (omp_get_thread_num() == 0) {
      granted = omp_get_num_threads();
    }
  }
  if (granted != threads) ThrowTooFewThreads(granted, threads);
}

// Runs all stages of a kernel in one parallel region.
void RunKernel(const Kernel& kernel, const KernelArgs& args, int threads);

// Runs one thread's share of every stage; every thread of the team calls it with the same arguments.
void RunShare(const Kernel& kernel, const KernelArgs& args, int thread, int threads, SpinBarrier& barrier);

// The cores the process was given, ascending, as they were when this was first asked for; pinning asks first.
const std::vector<int>& ProcessCores();

// Pins the team's threads, one to each core this process was given (thread i to the i-th), or to those given
// here. OpenMP keeps its threads, so later regions of the same width, of the same calling thread, stay
// pinned. Child processes inherit the calling thread's mask: UnpinThisThread, which gives the calling thread
// all of the process's cores back, comes before starting one.
void PinTeam(int threads);
void PinTeam(std::span<const int> cores);
void UnpinThisThread();

}  // namespace tilesmith
