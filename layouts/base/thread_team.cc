#include "layouts/base/thread_team.h"

#include <fmt/format.h>
#include <sched.h>

#include <vector>

#include "layouts/base/error.h"

#ifdef TILESMITH_X86
#include <immintrin.h>
#endif

namespace tilesmith {
namespace {

inline void SpinPause() {
#ifdef TILESMITH_X86
  _mm_pause();
#endif
}

}  // namespace

const std::vector<int>& ProcessCores() {
  static const std::vector<int> cores = [] {
    std::vector<int> list;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
      for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &set)) list.push_back(cpu);
      }
    }
    return list;
  }();
  return cores;
}

void SpinBarrier::Wait() {
  if (threads_ == 1) return;
  const unsigned generation = generation_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.store(generation + 1, std::memory_order_release);
    return;
  }
  constexpr int kSpinsBeforeYield = 1 << 14;
  for (int spins = 0; generation_.load(std::memory_order_acquire) == generation; ++spins) {
    if (spins < kSpinsBeforeYield) {
      SpinPause();
    } else {
      sched_yield();
    }
  }
}

void ThrowTooFewThreads(int granted, int wanted) {
  throw Error(ErrorCode::kEnvironment,
              fmt::format("OpenMP grants {} of {} threads (is OMP_THREAD_LIMIT or OMP_DYNAMIC set?)", granted,
                          wanted));
}

TaskRange ShareOf(int64_t tasks, int thread, int threads) {
  return {tasks * thread / threads, tasks * (thread + 1) / threads, thread};
}

void RunShare(const Kernel& kernel, const KernelArgs& args, int thread, int threads, SpinBarrier& barrier) {
  const int stages = kernel.Stages();
  for (int stage = 0; stage < stages; ++stage) {
    if (stage > 0) barrier.Wait();
    const TaskRange range = ShareOf(kernel.Tasks(stage), thread, threads);
    if (range.begin < range.end) kernel.Run(args, stage, range);
  }
}

void RunKernel(const Kernel& kernel, const KernelArgs& args, int threads) {
  SpinBarrier barrier(threads);
  RunOnTeam(threads, [&](int thread) { RunShare(kernel, args, thread, threads, barrier); });
}

void PinTeam(int threads) {
  const std::vector<int>& cores = ProcessCores();
  if (cores.empty()) return;
  std::vector<int> one_each;
  one_each.reserve(size_t(threads));
  for (int thread = 0; thread < threads; ++thread) one_each.push_back(cores[thread % cores.size()]);
  PinTeam(one_each);
}

void PinTeam(std::span<const int> cores) {
  ProcessCores();
  RunOnTeam(static_cast<int>(cores.size()), [&](int thread) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cores[thread], &set);
    sched_setaffinity(0, sizeof(set), &set);
  });
}

void UnpinThisThread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : ProcessCores()) CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

}  // namespace tilesmith
