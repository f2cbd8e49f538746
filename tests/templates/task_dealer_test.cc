#include "templates/cpu_device/task_dealer.h"

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <random>
#include <vector>

#include "layouts/base/thread_team.h"

namespace tilesmith {
namespace {

using Dealing = TaskDealer::Dealing;
constexpr auto kAll = TaskDealer::WaitFor::kAll, kNeighbours = TaskDealer::WaitFor::kNeighbours;

void Sleep(int milliseconds) {
  const timespec time{0, milliseconds * 1'000'000L};
  nanosleep(&time, nullptr);
}

struct Stage {
  TaskGrid grid;
  Split split = Split::kEven;
};

std::vector<Stage> RandomStages(std::mt19937& random) {
  const auto draw = [&](int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(random); };
  std::vector<Stage> stages(40);
  for (Stage& stage : stages) {
    const int64_t rows = 1 + draw(9);
    stage.grid = {
        .images = 1 + draw(2), .channels = 1 + draw(5), .rows = rows, .channels_inner = draw(1) == 1};
    if (draw(1) == 1) stage.grid.height = rows;
    if (draw(9) == 0) stage.grid = TaskGrid::List(draw(3000));
    if (draw(9) == 0) stage.grid = TaskGrid::List(0);
    stage.split = kSplits[draw(std::ssize(kSplits) - 1)];
  }
  return stages;
}

TEST(TaskDealer, EveryTaskIsDoneOnceAndStagesAreApart) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (const int threads : {1, 2, 3, 8}) {
    TaskDealer dealer(threads, WaitPolicy::kSleep);
    for (int run = 0; run < 40; ++run) {
      const std::vector<Stage> stages = RandomStages(random);
      const Dealing dealing = run % 3 == 0 ? Dealing::kShares : Dealing::kPieces;
      std::vector<std::vector<std::atomic<int>>> done;
      for (const Stage& stage : stages) done.emplace_back(static_cast<size_t>(stage.grid.tasks()));
      std::atomic<int> early{0};
      TaskDealer::Seat last;
      RunOnTeam(threads, [&](int thread) {
        TaskDealer::Seat seat = dealer.Begin(thread);
        for (size_t s = 0; s < stages.size(); ++s) {
          dealer.DoStage(stages[s].grid, stages[s].split, dealing, kAll, seat, [&](TaskRange range) {
            if (range.thread != thread) ++early;
            for (int64_t task = range.begin; task < range.end; ++task) ++done[s][static_cast<size_t>(task)];
            if (s == 0) return;
            for (const std::atomic<int>& before : done[s - 1]) early += before != 1;
          });
        }
        if (thread == 0) last = seat;
      });
      dealer.End(last);
      EXPECT_EQ(early, 0) << threads << " threads, run " << run;
      for (size_t s = 0; s < stages.size(); ++s) {
        for (size_t task = 0; task < done[s].size(); ++task)
          ASSERT_EQ(done[s][task], 1)
              << threads << " threads, run " << run << ", stage " << s << ", task " << task;
      }
    }
  }
}

TEST(TaskDealer, WhatASlowThreadHasLeftIsDoneByOthers) {
  constexpr int64_t kTasks = 64;
  TaskDealer dealer(2, WaitPolicy::kSleep);
  std::vector<int64_t> tasks(2);
  RunOnTeam(2, [&](int thread) {
    TaskDealer::Seat seat = dealer.Begin(thread);
    dealer.DoStage(TaskGrid::List(kTasks), Split::kEven, Dealing::kPieces, kAll, seat, [&](TaskRange range) {
      tasks[thread] += range.end - range.begin;
      if (thread == 1) Sleep(100);
    });
  });
  EXPECT_EQ(tasks[0] + tasks[1], kTasks);
  EXPECT_GT(tasks[0], kTasks / 2);
}

// Thread 1 begins when thread 0 has ended.
TEST(TaskDealer, AThreadThatDoesNotComeHoldsNobodyUp) {
  TaskDealer dealer(3, WaitPolicy::kSleep);
  for (int run = 0; run < 3; ++run) {
    std::atomic<bool> ended{false};
    std::atomic<int64_t> tasks{0};
    TaskDealer::Seat last;
    RunOnTeam(3, [&](int thread) {
      while (thread == 1 && !ended) Sleep(1);
      TaskDealer::Seat seat = dealer.Begin(thread);
      for (int stage = 0; stage < 100; ++stage) {
        dealer.DoStage({.channels = 2, .rows = 9, .height = 9},
                       stage % 2 == 0 ? Split::kRows : Split::kChannels, Dealing::kPieces, kAll, seat,
                       [&](TaskRange range) {
                         EXPECT_NE(thread, 1);
                         tasks += range.end - range.begin;
                       });
      }
      if (thread == 0) last = seat, ended = true;
    });
    dealer.End(last);
    EXPECT_EQ(tasks, 100 * 18);
    EXPECT_EQ(last.stage, static_cast<uint64_t>(100 * (run + 1)));
  }
}

// Threads that are d apart are at most d stages apart, and all are together where all are waited for.
TEST(TaskDealer, NeighboursAreAtMostAStageApart) {
  constexpr int kThreads = 5, kStages = 60;
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const auto wait_of = [](int stage) { return stage % 12 == 11 ? kAll : kNeighbours; };
  TaskDealer dealer(kThreads, WaitPolicy::kSleep);
  int furthest = 0;
  for (int run = 0; run < 10; ++run) {
    std::array<std::atomic<int>, kThreads> at = {};
    std::atomic<int> wrong{0}, apart{0};
    TaskDealer::Seat last;
    RunOnTeam(kThreads, [&](int thread) {
      std::mt19937 random(seed + static_cast<unsigned>(kThreads * run + thread));
      TaskDealer::Seat seat = dealer.Begin(thread);
      for (int stage = 0; stage < kStages; ++stage) {
        dealer.DoStage({.rows = kThreads, .height = kThreads}, Split::kRows, Dealing::kShares, wait_of(stage),
                       seat, [&](TaskRange) {
                         at[static_cast<size_t>(thread)] = stage;
                         for (int other = 0; other < kThreads; ++other) {
                           const int behind = stage - at[static_cast<size_t>(other)];
                           if (behind > std::abs(thread - other)) ++wrong;
                           if (stage > 0 && wait_of(stage - 1) == kAll && behind > 1) ++wrong;
                           if (behind > apart) apart = behind;
                         }
                         if (random() % 8 == 0) Sleep(1);
                       });
      }
      if (thread == 0) last = seat;
    });
    dealer.End(last);
    EXPECT_EQ(wrong, 0) << "run " << run;
    furthest = std::max(furthest, apart.load());
  }
  EXPECT_GT(furthest, 1) << "nobody ever went ahead";
}

TEST(TaskDealer, WaitsOfMomentsAreNotCounted) {
  TaskDealer dealer(2, WaitPolicy::kSleep);
  std::vector<TeamWaits> waits(2);
  RunOnTeam(2, [&](int thread) {
    TaskDealer::Seat seat = dealer.Begin(thread);
    dealer.DoStage(TaskGrid::List(2), Split::kEven, Dealing::kShares, kAll, seat, [&](TaskRange) {
      if (thread == 1) Sleep(20);
    });
    waits[thread] = seat.waits;
  });
  EXPECT_GT(waits[0].seconds, 0.01);
  EXPECT_GT(waits[0].late_seconds, 0.005);
  EXPECT_LE(waits[0].late_seconds, waits[0].seconds);
  EXPECT_LT(waits[1].seconds, 0.01);
}

}  // namespace
}  // namespace tilesmith
