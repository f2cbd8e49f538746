#include "layouts/base/thread_team.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

#include "layouts/measure/core_placement.h"

namespace tilesmith {
namespace {

TEST(ShareOf, CoversEveryTaskOnceInOrderAndEvenly) {
  for (int threads : {1, 2, 3, 7, 64}) {
    for (int64_t tasks : {0, 1, 2, 3, 63, 64, 65, 1000}) {
      int64_t next = 0;
      for (int thread = 0; thread < threads; ++thread) {
        const TaskRange share = ShareOf(tasks, thread, threads);
        EXPECT_EQ(share.begin, next) << tasks << " tasks, thread " << thread << " of " << threads;
        EXPECT_EQ(share.thread, thread);
        EXPECT_GE(share.end - share.begin, tasks / threads);
        EXPECT_LE(share.end - share.begin, tasks / threads + 1);
        next = share.end;
      }
      EXPECT_EQ(next, tasks);
    }
  }
}

TEST(SpinBarrier, NobodyLeavesBeforeAllArrive) {
  constexpr int kThreads = 3, kRounds = 200;
  SpinBarrier barrier(kThreads);
  std::atomic<int> arrived = 0;
  std::atomic<int> early = 0;
  std::vector<std::thread> team;
  for (int i = 0; i < kThreads; ++i) {
    team.emplace_back([&] {
      for (int round = 1; round <= kRounds; ++round) {
        ++arrived;
        barrier.Wait();
        if (arrived < round * kThreads) ++early;
        barrier.Wait();
      }
    });
  }
  for (std::thread& thread : team) thread.join();
  EXPECT_EQ(early, 0);
  EXPECT_EQ(arrived, kThreads * kRounds);
}

TEST(ThreadTeam, EachHasThreadsOfItsOwn) {
  ThreadTeam one(0), other(1);  // one that sleeps at once, one that does not
  std::vector<std::thread::id> seen;
  const auto thread_of = [](ThreadTeam& team, int threads) {
    const TeamScope scope(team);
    std::thread::id last;
    RunOnTeam(threads, [&](int thread) {
      if (thread + 1 == threads) last = std::this_thread::get_id();
    });
    return last;
  };
  const std::thread::id first = thread_of(one, 2);
  EXPECT_NE(first, std::this_thread::get_id());
  EXPECT_NE(thread_of(other, 2), first);
  EXPECT_NE(thread_of(one, 3), first);
  for (int i = 0; i < 200; ++i) {
    if (i % 50 == 0) usleep(2000);
    if (i % 3 == 0) other.Rest();
    EXPECT_EQ(thread_of(one, 2), first) << i;
    EXPECT_NE(thread_of(other, 2), first) << i;
  }
}

TEST(ThreadTeam, MayBeDrivenByOneThreadAfterTheOther) {
  ThreadTeam team(1e-4);
  std::atomic<int> calls = 0;
  for (int i = 0; i < 20; ++i) {
    std::thread([&] {
      const TeamScope scope(team);
      RunOnTeam(3, [&](int) { ++calls; });
    }).join();
  }
  EXPECT_EQ(calls, 60);
}

TEST(ForEachIndex, CallsEachOnceAndThrowsOnWhatIsThrown) {
  for (const int64_t count : {0, 1, 2, 1000}) {
    std::vector<std::atomic<int>> calls(static_cast<size_t>(count));
    ForEachIndex(count, [&](int64_t index) { ++calls[static_cast<size_t>(index)]; });
    for (const std::atomic<int>& one : calls) EXPECT_EQ(one, 1);
  }
  std::atomic<int> within = 0;
  RunOnTeam(2, [&](int) { ForEachIndex(10, [&](int64_t) { ++within; }); });
  EXPECT_EQ(within, 20);
  EXPECT_THROW(ForEachIndex(100,
                            [](int64_t index) {
                              if (index == 57) throw std::runtime_error("57");
                            }),
               std::runtime_error);
}

TEST(RunOnTeam, RunsEachThreadOnceAndTheCallerIsThreadZero) {
  const std::thread::id caller = std::this_thread::get_id();
  for (int threads : {1, 2, 3}) {
    std::vector<int> runs(threads, 0);
    std::thread::id first;
    RunOnTeam(threads, [&](int thread) {
      ++runs[thread];
      if (thread == 0) first = std::this_thread::get_id();
    });
    EXPECT_EQ(runs, std::vector<int>(threads, 1));
    EXPECT_EQ(first, caller);
  }
}

// Stage 1 sums what stage 0 wrote, each task reading all of it, so it is right only when the stages are
// apart.
class TwoStages : public Kernel {
 public:
  static constexpr int64_t kFirst = 37, kSecond = 5;

  int Stages() const override { return 2; }
  int64_t Tasks(int stage) const override { return stage == 0 ? kFirst : kSecond; }
  void Run(const KernelArgs& args, int stage, TaskRange range) const override {
    for (int64_t task = range.begin; task < range.end; ++task) {
      if (stage == 0) {
        args.scratch_at<float>(0)[task] = args.inputs[0].image<float>(0)[task] + 1;
      } else {
        float sum = 0;
        for (int64_t i = 0; i < kFirst; ++i) sum += args.scratch_at<float>(0)[i];
        args.output.image<float>(0)[task] += sum;
      }
    }
  }
};

TEST(RunKernel, RunsEveryTaskOfEveryStageOnceAndInStageOrder) {
  std::vector<float> in(TwoStages::kFirst);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  const float want = 37 * 36 / 2 + 37;
  for (int threads : {1, 2, 3, 8}) {
    std::vector<float> scratch(TwoStages::kFirst, -1000.0f), out(TwoStages::kSecond, 0.0f);
    const InputView view = {in.data(), 0};
    RunKernel(TwoStages(), {.inputs = {&view, 1}, .output = {out.data(), 0}, .scratch = scratch.data()},
              threads);
    EXPECT_EQ(out, std::vector<float>(TwoStages::kSecond, want)) << threads << " threads";
  }
}

// One task of the first stage throws, whichever thread has it; the others still meet at the barrier.
class Throwing : public TwoStages {
 public:
  void Run(const KernelArgs&, int stage, TaskRange range) const override {
    if (stage == 0 && range.end == kFirst) throw std::runtime_error("the last task");
  }
};

TEST(RunKernel, WhatAThreadThrowsReachesTheCaller) {
  for (int threads : {1, 2, 3, 8})
    EXPECT_THROW(RunKernel(Throwing(), {}, threads), std::runtime_error) << threads << " threads";
}

// In a thread of its own, since pinning outlives the call.
TEST(PinTeam, PinsToOneCoreAndUnpins) {
  std::thread([] {
    cpu_set_t before, pinned, after;
    ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
    PinTeam(1);
    ASSERT_EQ(sched_getaffinity(0, sizeof(pinned), &pinned), 0);
    EXPECT_EQ(CPU_COUNT(&pinned), 1);
    UnpinThisThread();
    ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
    EXPECT_GE(CPU_COUNT(&after), CPU_COUNT(&before));
  }).join();
}

// A thread that is started has the mask of its creator, who is on a core of his own.
TEST(PinTeam, HoldsInRegionsOfAllSizes) {
  const std::vector<int>& all = ProcessCores();
  if (all.size() < 2) GTEST_SKIP() << "one core";
  const std::vector<int> cores = {all[0], all[1], all[1], all[0]};
  const auto run = [&] {
    std::vector<int> seen(cores.size(), -1);
    RunOnTeam(static_cast<int>(cores.size()), [&](int thread) {
      cpu_set_t set;
      CPU_ZERO(&set);
      sched_getaffinity(0, sizeof(set), &set);
      for (const int core : all)
        if (CPU_ISSET(core, &set) && CPU_COUNT(&set) == 1) seen[thread] = core;
    });
    return seen;
  };
  std::thread([&] {
    const TeamPinning before = CurrentPinning();
    PinTeam(cores);
    EXPECT_EQ(run(), cores);
    for (const int narrower : {2, 1, 3}) {
      RunOnTeam(narrower, [](int) {});
      EXPECT_EQ(run(), cores) << narrower;
    }
    Restore(before);
    cpu_set_t after;
    ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&after, &before.mask));
    EXPECT_EQ(run(), std::vector<int>(cores.size(), -1));  // nobody is pinned any more
  }).join();
}

// Trained weights hold denormals, with which Intel's cores multiply hundreds of times slower.
TEST(RunOnTeam, DenormalsAreZeroWithinAndAsTheyWereBehind) {
#if !defined(__x86_64__) && !defined(__aarch64__)
  GTEST_SKIP() << "no such control on this CPU";
#endif
  const volatile float denormal = 1e-39F, smallest = std::numeric_limits<float>::min(), tenth = 0.1F;
  for (const int threads : {1, 2, 3}) {
    std::vector<float> operands(threads, -1), results(threads, -1);
    RunOnTeam(threads, [&](int thread) {
      operands[thread] = denormal * 1e20F;
      results[thread] = smallest * tenth;
    });
    EXPECT_EQ(operands, std::vector<float>(threads)) << threads;
    EXPECT_EQ(results, std::vector<float>(threads)) << threads;
    EXPECT_GT(denormal * 1e20F, 0) << threads;
    EXPECT_GT(smallest * tenth, 0) << threads;
  }
}

// A region of it is on threads that wait for each other, and know that they are in one.
TEST(ThreadTeam, IsLentThreads) {
  std::atomic<int> lent{0};
  const auto lend = [](const void* pool, int threads, ThreadTeam::Region region) {
    ++*const_cast<std::atomic<int>*>(static_cast<const std::atomic<int>*>(pool));
    std::vector<std::thread> others;
    for (int thread = 1; thread < threads; ++thread)
      others.emplace_back([=] { region.call(region.body, thread); });
    region.call(region.body, 0);
    for (std::thread& other : others) other.join();
  };
  ThreadTeam team(lend, &lent);
  const TeamScope scope(team);
  SpinBarrier barrier(3);
  std::vector<int> seen(3, 0);
  RunOnTeam(3, [&](int thread) {
    barrier.Wait();
    seen[thread] += IsInRegion() ? 1 : 0;
  });
  EXPECT_EQ(seen, std::vector<int>(3, 1));
  EXPECT_EQ(lent, 1);
  EXPECT_FALSE(IsInRegion());
}

TEST(CorePlacement, SeveralThreadsTakeTime) {
  EXPECT_FALSE(SeePlacement(1).is_known());
  const CorePlacement two = SeePlacement(2);
  EXPECT_TRUE(two.is_known());
  EXPECT_GT(two.barrier_seconds, 0);
}

TEST(CorePlacement, AlikeIsWithinHalfAsMuchAgain) {
  EXPECT_TRUE(AreAlike({1, 10}, {1.5, 15}));
  EXPECT_TRUE(AreAlike({1.5, 15}, {1, 10}));
  EXPECT_FALSE(AreAlike({1, 10}, {1.6, 10}));
  EXPECT_FALSE(AreAlike({1, 10}, {1, 16}));
  EXPECT_TRUE(AreAlike({}, {}));
}

TEST(CorePlacement, ArithmeticOfItsOwnIsBetterThanANearNeighbour) {
  EXPECT_TRUE(IsBetter({1, 10}, {3, 10}));
  EXPECT_TRUE(IsBetter({3, 10}, {1, 20}));
  EXPECT_FALSE(IsBetter({1, 20}, {3, 10}));
  EXPECT_TRUE(IsBetter({1, 11}, {2, 10})) << "as fast but for noise";
  EXPECT_FALSE(IsBetter({1, 10}, {1, 10}));
}

}  // namespace
}  // namespace tilesmith
