#include "layouts/base/thread_team.h"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "layouts/base/arm_cpu.h"
#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "layouts/base/fork_gate.h"

#ifdef TILESMITH_X86
#include <immintrin.h>
#endif

namespace tilesmith {
namespace {

constexpr double kOwnTeamsAwakeSeconds = 5e-3;
constexpr int kNowhere = -1;

thread_local int pinned_to = kNowhere;
thread_local bool in_region = false;
thread_local ThreadTeam* scoped_team = nullptr;

inline void SpinPause() {
#ifdef TILESMITH_X86
  _mm_pause();
#elif defined(TILESMITH_ARM)
  asm volatile("isb");  // waits for some ten ns; "yield" is nothing on most
#endif
}

cpu_set_t SetOf(std::span<const int> cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  return set;
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
#ifdef __aarch64__
    std::vector<CoreSpeed> speeds;
    for (const int cpu : list) {
      std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/cpu_capacity", cpu));
      if (CoreSpeed& speed = speeds.emplace_back(CoreSpeed{cpu}); !(file >> speed.capacity)) speed = {cpu};
    }
    list = FastestTeam(std::move(speeds));
#endif
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

WaitPolicy ParseWaitPolicy(std::string_view name) {
  for (const WaitPolicy policy : kWaitPolicies)
    if (WaitPolicyName(policy) == name) return policy;
  throw Error(ErrorCode::kUsage, fmt::format("wait is \"{}\" (known: spin, yield, sleep)", name));
}

// The order of what is advanced and of whether somebody sleeps is the same for all threads.
void Generation::Advance() {
  value_.fetch_add(1, std::memory_order_seq_cst);
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
    SpinUntil(wanted, kPauses);
  } else if (policy_ == WaitPolicy::kYield || step < kYieldsBeforeSleep) {
    sched_yield();
  } else {
    SleepUntil(wanted);
  }
}

void Generation::SleepUntil(unsigned wanted) {
  for (unsigned seen = now(); IsBefore(seen, wanted); seen = now())
    value_.wait(seen, std::memory_order_acquire);
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

ThreadTeam::~ThreadTeam() {
  ForgetParents();
  region_ = {};
  for (const std::unique_ptr<Worker>& worker : workers_) worker->calls.Advance();
  for (const std::unique_ptr<Worker>& worker : workers_) pthread_join(worker->handle, nullptr);
}

// Behind a fork the threads of the parent are not there, and what they had is left to nobody.
void ThreadTeam::ForgetParents() {
  if (forks_ == ForkCount()) return;
  for (std::unique_ptr<Worker>& worker : workers_) {
    [[maybe_unused]] const Worker* const left = worker.release();
  }
  workers_.clear();
  forks_ = ForkCount();
}

void ThreadTeam::Run(int threads, Region region) {
  TILESMITH_CHECK(threads > 1 && !in_region, "{} threads", threads);
  if (lend_ != nullptr) {
    const auto lent = [&](int thread) {
      in_region = true;
      region.call(region.body, thread);
      in_region = false;
    };
    return lend_(pool_, threads, RegionOf(lent));
  }
  ForgetParents();
  if (static_cast<int>(workers_.size()) < threads - 1) Start(threads);
  region_ = region;
  working_.store(threads - 1, std::memory_order_relaxed);
  const bool are_many = threads > static_cast<int>(ProcessCores().size());
  if (sleeps_at_once_.load(std::memory_order_relaxed) != are_many)
    sleeps_at_once_.store(are_many, std::memory_order_relaxed);
  const unsigned done = done_.now() + 1;
  for (int thread = 1; thread < threads; ++thread) workers_[static_cast<size_t>(thread) - 1]->calls.Advance();
  Place(0);
  in_region = true;
  region.call(region.body, 0);
  in_region = false;
  done_.WaitUntil(done);
}

// Signals from outside are for the program's own threads.
void ThreadTeam::Start(int threads) {
  workers_.reserve(static_cast<size_t>(threads) - 1);
  sigset_t most, before;
  sigfillset(&most);
  for (const int of_a_fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT})
    sigdelset(&most, of_a_fault);
  pthread_sigmask(SIG_SETMASK, &most, &before);
  int failed = 0;
  while (failed == 0 && static_cast<int>(workers_.size()) < threads - 1) {
    auto worker = std::make_unique<Worker>();
    worker->team = this;
    worker->thread = static_cast<int>(workers_.size()) + 1;
    worker->pinned_to = pinned_to;
    const auto work = [](void* of) -> void* {
      auto& self = *static_cast<Worker*>(of);
      self.team->Work(self);
      return nullptr;
    };
    failed = pthread_create(&worker->handle, nullptr, work, worker.get());
    if (failed == 0) workers_.push_back(std::move(worker));
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failed == 0) return;
  throw Error(ErrorCode::kEnvironment, fmt::format("thread {} of {} cannot be started: {}",
                                                   workers_.size() + 2, threads, std::strerror(failed)));
}

void ThreadTeam::Work(Worker& self) {
  in_region = true;
  pinned_to = self.pinned_to;
  for (unsigned call = 1;; ++call) {
    AwaitCall(self, call);
    if (region_.call == nullptr) return;
    Place(self.thread);
    region_.call(region_.body, self.thread);
    if (working_.fetch_sub(1, std::memory_order_acq_rel) == 1) done_.Advance();
  }
}

void ThreadTeam::AwaitCall(Worker& self, unsigned call) const {
  using Clock = std::chrono::steady_clock;
  constexpr int kPauses = 64;
  const auto end = Clock::now() + std::chrono::duration<double>(awake_seconds_);
  while (!self.calls.SpinUntil(call, kPauses) && !sleeps_at_once_.load(std::memory_order_relaxed) &&
         Clock::now() < end) {
  }
  self.calls.SleepUntil(call);
}

void ThreadTeam::Place(int thread) const {
  if (static_cast<size_t>(thread) < cores_.size()) {
    KeepOn(cores_[static_cast<size_t>(thread)]);
  } else if (thread > 0 && pinned_to != kNowhere) {
    const cpu_set_t anywhere = SetOf(ProcessCores());
    if (sched_setaffinity(0, sizeof(anywhere), &anywhere) == 0) pinned_to = kNowhere;
  }
}

ThreadTeam& CurrentTeam() {
  if (scoped_team != nullptr) return *scoped_team;
  static thread_local ThreadTeam own(kOwnTeamsAwakeSeconds);
  return own;
}

TeamScope::TeamScope(ThreadTeam& team) : before_(scoped_team) { scoped_team = &team; }
TeamScope::~TeamScope() { scoped_team = before_; }

bool IsInRegion() { return in_region; }

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

void KeepOn(int core) {
  if (pinned_to == core) return;
  const cpu_set_t set = SetOf({&core, 1});
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
  CurrentTeam().PinTo(cores);
  pinned_to = kNowhere;
  if (!cores.empty()) KeepOn(cores.front());
}

void UnpinThisThread() { Restore({SetOf(ProcessCores()), {}}); }

TeamPinning CurrentPinning() {
  const std::span<const int> cores = CurrentTeam().cores();
  TeamPinning pinning = {{}, {cores.begin(), cores.end()}};
  CPU_ZERO(&pinning.mask);
  sched_getaffinity(0, sizeof(pinning.mask), &pinning.mask);
  return pinning;
}

void Restore(const TeamPinning& pinning) {
  sched_setaffinity(0, sizeof(pinning.mask), &pinning.mask);
  pinned_to = kNowhere;
  CurrentTeam().PinTo(pinning.cores);
}

}  // namespace tilesmith
