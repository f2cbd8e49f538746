#include "templates/cpu_device/team_pace.h"

#include <gtest/gtest.h>
#include <time.h>

#include <numeric>
#include <vector>

#include "layouts/measure/clock.h"
#include "templates/cpu_device/team_stream.h"

namespace tilesmith {
namespace {

// A machine on which a run takes so long by either, and on which the team is late or not.
struct Weather {
  double team = 1, alone = 2;
  double late = 0;  // of the team's seconds
};

// How many of `runs` runs are one thread's.
int AloneRuns(TeamPace& pace, const Weather& weather, int runs) {
  int alone = 0;
  for (int i = 0; i < runs; ++i) {
    alone += pace.alone();
    pace.Took(pace.alone() ? weather.alone : weather.team, pace.alone() ? 0 : weather.late);
  }
  return alone;
}

TEST(TeamPace, ATeamThatIsNotLateIsNeverLeft) {
  TeamPace pace;
  EXPECT_EQ(AloneRuns(pace, {.team = 5, .alone = 1, .late = 0}, 1000), 0);
  // Little waits are no reason, nor is a single long one.
  EXPECT_EQ(AloneRuns(pace, {.team = 1, .alone = 0.5, .late = 0.2}, 1000), 0);
  pace.Took(10, 9);
  EXPECT_EQ(AloneRuns(pace, {.team = 1, .alone = 0.5, .late = 0}, 1000), 0);
}

TEST(TeamPace, OneThreadGoesOnWhereItIsFaster) {
  TeamPace pace;
  const int alone = AloneRuns(pace, {.team = 10, .alone = 2, .late = 8}, 1000);
  EXPECT_GT(alone, 600);
  EXPECT_LT(alone, 1000) << "the team is tried again now and then";
  TeamPace short_runs;
  EXPECT_GT(AloneRuns(short_runs, {.team = 0.01, .alone = 0.002, .late = 0.008}, 1000), 930);
}

TEST(TeamPace, TheTeamComesBackWhenItsMachineIsQuiet) {
  TeamPace pace;
  AloneRuns(pace, {.team = 10, .alone = 2, .late = 8}, 1000);
  EXPECT_LE(AloneRuns(pace, {.team = 1, .alone = 2, .late = 0}, 100), 64);
  EXPECT_EQ(AloneRuns(pace, {.team = 1, .alone = 2, .late = 0}, 1000), 0);
}

TEST(TeamPace, WhereBeingAloneIsNoHelpItIsSeldomTried) {
  TeamPace pace;
  EXPECT_LT(AloneRuns(pace, {.team = 2, .alone = 4, .late = 1}, 10000), 100);
}

// Twice its input, and which threads did it.
class Doubles final : public Kernel {
 public:
  int64_t Tasks(int) const override { return 64; }
  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const auto* in = args.inputs[0].image<float>(0);
    auto* out = args.output.image<float>(0);
    for (int64_t i = range.begin; i < range.end; ++i) out[i] = 2 * in[i];
    if (range.thread == 1 && sleeps) SleepFor(0.002);
  }
  bool sleeps = false;

 private:
  static void SleepFor(double seconds) {
    const timespec time{0, static_cast<int64_t>(seconds * 1e9)};
    nanosleep(&time, nullptr);
  }
};

TEST(TeamStream, ARunAloneComputesTheSame) {
  std::vector<float> in(64), out(64);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  Doubles kernel;
  kernel.sleeps = true;  // so that thread 0 waits, and soon goes on alone
  TeamStream stream(2, WaitPolicy::kSleep, nullptr);
  const std::vector<Launch> program(
      3, Launch{.kernel = &kernel, .inputs = {{in.data(), 0}}, .output = {out.data(), 0}});
  for (int run = 0; run < 20; ++run) {
    out.assign(out.size(), -1);
    stream.Run(program, {});
    for (size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], 2 * in[i]) << "run " << run << ", element " << i;
  }
  std::vector<double> seconds(program.size());
  stream.Run(program, seconds);
  EXPECT_GT(std::reduce(seconds.begin(), seconds.end()), 0.003) << "timed runs are the team's";
  const double begin = NowSeconds();
  stream.RunByAll(program);
  EXPECT_GT(NowSeconds() - begin, 0.003);
}

}  // namespace
}  // namespace tilesmith
