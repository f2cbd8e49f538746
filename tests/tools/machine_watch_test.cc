#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

#include "layouts/measure/clock.h"
#include "tests/tools/busy_programs.h"
#include "tools/cli/system_files.h"
#include "tools/doctor/disturbance.h"

namespace tilesmith {
namespace {

TEST(MachineWatchTest, SharesAreOfTheIntervalsThatWereDisturbed) {
  Disturbance all = {3, 1};
  all += {1, 1};
  EXPECT_EQ(all.share(), 0.5);
  EXPECT_EQ((all - Disturbance{3, 1}).share(), 1);
  EXPECT_EQ(Disturbance().share(), 0);
  EXPECT_EQ(DisturbedCell(0.41).text, "41%");
  EXPECT_EQ(DisturbedCell(0.05).text, "");
  MachineWatch watch;
  watch.EndInterval();
  EXPECT_GT(watch.total().seconds, 0);
  EXPECT_GE(watch.total().disturbed_seconds, 0);
}

// This thread on one core, for as long as it lives.
class OnOneCore {
 public:
  OnOneCore() {
    sched_getaffinity(0, sizeof(before_), &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    while (!CPU_ISSET(cpu_, &before_)) ++cpu_;
    CPU_SET(cpu_, &one);
    sched_setaffinity(0, sizeof(one), &one);
  }
  ~OnOneCore() { sched_setaffinity(0, sizeof(before_), &before_); }
  int cpu() const { return cpu_; }

 private:
  int cpu_ = 0;
  cpu_set_t before_;
};

// Of a watch while this thread computes for a while.
double ShareWhileComputing() {
  MachineWatch watch;
  for (const double begin = NowSeconds(); NowSeconds() - begin < 0.4;) continue;
  return watch.EndInterval().share();
}

// Four programs that never rest, pinned with this one to a core: it has to wait for it.
TEST(MachineWatchTest, AThreadThatWaitsForAnotherProgramIsDisturbed) {
  if (!std::ifstream("/proc/self/schedstat").good()) GTEST_SKIP() << "the kernel does not count that";
  const OnOneCore pinned;
  const BusyPrograms others(4, pinned.cpu());
  EXPECT_EQ(ShareWhileComputing(), 1);
}

// A machine that is busy otherwise would not show it.
TEST(MachineWatchTest, ThreadsOfOneProgramDoNotDisturbEachOther) {
  const CpuTicks before = ReadCpuTicks();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  if (BusyCpus(before, ReadCpuTicks()) > 0.03) GTEST_SKIP() << "other programs compute";
  const OnOneCore pinned;
  std::atomic<bool> over = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      while (!over) continue;
    });
  double least = 1;
  for (int i = 0; i < 5; ++i) least = std::min(least, ShareWhileComputing());
  EXPECT_EQ(least, 0);
  over = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tilesmith
