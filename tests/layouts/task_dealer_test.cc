#include "layouts/base/task_dealer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace tilesmith {
namespace {

// Runs `stages` stages of a grid on a team of threads, each of which calls late(thread, stage) first, and
// counts how often each task of each stage ran and by which threads.
struct Played {
  std::vector<std::vector<int>> runs;   // [stage][task]
  std::vector<std::vector<int>> whose;  // [stage][task]
  bool in_order = true;                 // no task ran before all of the stage before had
};

template <typename Late>
Played Play(const TaskGrid& grid, int threads, int stages, WaitPolicy policy, const Late& late) {
  struct Stage {
    std::vector<std::atomic<int>> runs, whose;
    std::atomic<int64_t> done{0};
    explicit Stage(size_t tasks) : runs(tasks), whose(tasks) {}
  };
  std::vector<std::unique_ptr<Stage>> all;
  for (int stage = 0; stage < stages; ++stage)
    all.push_back(std::make_unique<Stage>(static_cast<size_t>(grid.tasks())));
  TaskDealer dealer(threads, policy);
  std::atomic<bool> in_order{true};
  const unsigned first = dealer.next_stage();
  std::vector<std::thread> team;
  for (int thread = 0; thread < threads; ++thread) {
    team.emplace_back([&, thread] {
      for (int stage = 0; stage < stages; ++stage) {
        late(thread, stage);
        Stage& now = *all[static_cast<size_t>(stage)];
        const Split split = kSplits[static_cast<size_t>(stage) % std::size(kSplits)];
        dealer.RunStage(first + static_cast<unsigned>(stage), grid, split, thread, [&](TaskRange range) {
          if (stage > 0 && all[static_cast<size_t>(stage) - 1]->done != grid.tasks()) in_order = false;
          for (int64_t task = range.begin; task < range.end; ++task) {
            ++now.runs[static_cast<size_t>(task)];
            now.whose[static_cast<size_t>(task)] = range.thread;
          }
          now.done += range.end - range.begin;
        });
        if (now.done != grid.tasks()) in_order = false;
      }
    });
  }
  for (std::thread& thread : team) thread.join();
  Played played{.runs = {}, .whose = {}, .in_order = in_order};
  for (const auto& stage : all) {
    played.runs.emplace_back(stage->runs.begin(), stage->runs.end());
    played.whose.emplace_back(stage->whose.begin(), stage->whose.end());
  }
  return played;
}

void Sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

TEST(TaskDealer, EveryTaskOfEveryStageRunsOnceAndInStageOrder) {
  const TaskGrid grids[] = {{.images = 2, .channels = 3, .rows = 7, .height = 7},
                            {.channels = 5, .rows = 1, .channels_inner = true, .height = 1},
                            {.channels = 9, .rows = 2, .height = 2, .at_once = true},
                            TaskGrid::List(1),
                            TaskGrid::List(0)};
  for (const TaskGrid& grid : grids) {
    for (const int threads : {1, 2, 3, 7}) {
      for (const WaitPolicy policy : {WaitPolicy::kYield, WaitPolicy::kSleep}) {
        constexpr int kStages = 40;
        const Played played = Play(grid, threads, kStages, policy, [](int, int) {});
        EXPECT_TRUE(played.in_order);
        for (const std::vector<int>& runs : played.runs)
          EXPECT_EQ(runs, std::vector<int>(static_cast<size_t>(grid.tasks()), 1)) << threads << " threads";
      }
    }
  }
}

TEST(TaskDealer, OthersTakeTheShareOfAThreadThatIsLate) {
  const TaskGrid grid = {.channels = 1, .rows = 16, .channels_inner = true, .height = 16};
  for (const WaitPolicy policy : kWaitPolicies) {
    constexpr int kStages = 10;
    const auto begin = std::chrono::steady_clock::now();
    std::atomic<bool> slept{false};
    const Played played = Play(grid, 2, kStages, policy, [&](int thread, int stage) {
      if (thread != 1 || stage != 1 || slept.exchange(true)) return;
      Sleep(0.2);
    });
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    EXPECT_TRUE(played.in_order);
    for (const std::vector<int>& runs : played.runs) EXPECT_EQ(runs, std::vector<int>(16, 1));
    // The team has done all of them meanwhile.
    for (int stage = 1; stage < kStages; ++stage)
      EXPECT_EQ(played.whose[static_cast<size_t>(stage)], std::vector<int>(16, 0)) << "stage " << stage;
    EXPECT_LT(taken.count(), 2.0);
  }
}

TEST(TaskDealer, StagesGoOnFromOneProgramToTheNext) {
  TaskDealer dealer(2, WaitPolicy::kSleep);
  std::atomic<int> runs{0};
  for (int program = 0; program < 100; ++program) {
    const unsigned first = dealer.next_stage();
    RunOnTeam(2, [&](int thread) {
      for (unsigned stage = 0; stage < 3; ++stage)
        dealer.RunStage(first + stage, TaskGrid::List(5), Split::kEven, thread,
                        [&](TaskRange range) { runs += static_cast<int>(range.end - range.begin); });
    });
    EXPECT_EQ(runs, 15 * (program + 1));
  }
}

}  // namespace
}  // namespace tilesmith
