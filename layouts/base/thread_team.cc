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

std::string_view WaitPolicyName(WaitPolicy policy) {
  switch (policy) {
    case WaitPolicy::kSpin:
      return "spin";
    case WaitPolicy::kYield:
      return "yield";
    case WaitPolicy::kSleep:
      return "sleep";
  }
  return "";
}

void Generation::Advance() {
  value_.fetch_add(1, std::memory_order_acq_rel);
  if (policy_ == WaitPolicy::kSleep) value_.notify_all();
}

bool Generation::SpinUntil(unsigned wanted, int pauses) const {
  for (int pause = 0; IsBefore(now(), wanted); ++pause) {
    if (pause == pauses) return false;
    SpinPause();
  }
  return true;
}

void Generation::Pause(unsigned wanted, int step) {
  constexpr int kPauses = 64, kYieldsBeforeSleep = 1024;
  if (policy_ == WaitPolicy::kSpin) {
    for (int i = 0; i < kPauses && IsBefore(now(), wanted); ++i) SpinPause();
  } else if (policy_ == WaitPolicy::kYield || step < kYieldsBeforeSleep) {
    sched_yield();
  } else {
    if (const unsigned seen = now(); IsBefore(seen, wanted)) value_.wait(seen, std::memory_order_acquire);
  }
}

void Generation::WaitUntil(unsigned wanted) {
  if (SpinUntil(wanted)) return;
  for (int step = 0; IsBefore(now(), wanted); ++step) Pause(wanted, step);
}

void SpinBarrier::Wait() {
  if (threads_ == 1) return;
  const unsigned generation = generation_.now();
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.Advance();
  } else {
    generation_.WaitUntil(generation + 1);
  }
}

void ThrowTooFewThreads(int granted, int wanted) {
  throw Error(ErrorCode::kEnvironment,
              fmt::format("OpenMP grants {} of {} threads (is OMP_THREAD_LIMIT or OMP_DYNAMIC set?)", granted,
                          wanted));
}

void RunShare(const Kernel& kernel, const KernelArgs& args, int thread, int threads, SpinBarrier& barrier,
              FirstError& error, Split split) {
  const int stages = kernel.Stages();
  for (int stage = 0; stage < stages; ++stage) {
    if (stage > 0) barrier.Wait();
    const Share share(kernel.Grid(stage), split, thread, threads);
    share.ForEachRange(0, share.tasks(), thread, [&](TaskRange range) {
      if (error.raised()) return;
      try {
        kernel.Run(args, stage, range);
      } catch (...) {
        error.Capture();  // the others still expect this thread at every barrier
      }
    });
  }
}

void RunKernel(const Kernel& kernel, const KernelArgs& args, int threads, Split split) {
  SpinBarrier barrier(threads);
  FirstError error;
  RunOnTeam(threads, [&](int thread) { RunShare(kernel, args, thread, threads, barrier, error, split); });
  error.Rethrow();
}

namespace {

constexpr int kNowhere = -1;
thread_local std::vector<int> team_cores;  // of the teams that this thread calls
thread_local int pinned_to = kNowhere;

}  // namespace

std::span<const int> TeamCores() { return team_cores; }

void KeepOn(int core) {
  if (pinned_to == core) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof(set), &set) == 0) pinned_to = core;
}

void PinTeam(int threads) {
  const std::vector<int>& cores = ProcessCores();
  if (cores.empty()) return;
  std::vector<int> one_each;
  one_each.reserve(static_cast<size_t>(threads));
  for (int thread = 0; thread < threads; ++thread) one_each.push_back(cores[thread % cores.size()]);
  PinTeam(one_each);
}

void PinTeam(std::span<const int> cores) {
  ProcessCores();
  team_cores.clear();
  RunOnTeam(static_cast<int>(cores.size()), [&](int thread) {
    pinned_to = kNowhere;
    KeepOn(cores[thread]);
  });
  team_cores.assign(cores.begin(), cores.end());
}

void UnpinThisThread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : ProcessCores()) CPU_SET(cpu, &set);
  Restore({set, {}});
}

TeamPinning CurrentPinning() {
  TeamPinning pinning = {{}, team_cores};
  CPU_ZERO(&pinning.mask);
  sched_getaffinity(0, sizeof(pinning.mask), &pinning.mask);
  return pinning;
}

void Restore(const TeamPinning& pinning) {
  sched_setaffinity(0, sizeof(pinning.mask), &pinning.mask);
  pinned_to = kNowhere;
  team_cores = pinning.cores;
}

}  // namespace tilesmith
