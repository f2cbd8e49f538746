#include <gtest/gtest.h>
#include <time.h>

#include <map>
#include <numeric>
#include <vector>

#include "layouts/measure/clock.h"
#include "templates/cpu_device/team_stream.h"

namespace tilesmith {
namespace {

// A machine on which a run takes so long by each way, and what a team in even shares waits there.
struct Weather {
  double shares = 1, pieces = 1, alone = 2;
  double waited = 0, late = 0;
};

// How many of `runs` runs were done by each way.
std::map<TeamWay, int> Runs(TeamPace& pace, const Weather& weather, int runs) {
  std::map<TeamWay, int> by_way;
  for (int i = 0; i < runs; ++i) {
    const TeamWay way = pace.way();
    ++by_way[way];
    if (way == TeamWay::kShares) pace.Took(weather.shares, {weather.waited, weather.late});
    if (way == TeamWay::kPieces)
      pace.Took(weather.pieces, {0, weather.pieces * weather.late / weather.shares});
    if (way == TeamWay::kAlone) pace.Took(weather.alone, {});
  }
  return by_way;
}

TEST(TeamPace, ATeamThatDoesNotWaitIsNeverLeft) {
  TeamPace pace;
  EXPECT_EQ(Runs(pace, {.shares = 5, .pieces = 1, .alone = 1}, 1000)[TeamWay::kShares], 1000);
  // Little waits are no reason, nor is a single long one.
  const Weather little{.shares = 1, .pieces = 0.5, .alone = 0.5, .waited = 0.05, .late = 0.05};
  EXPECT_EQ(Runs(pace, little, 1000)[TeamWay::kShares], 1000);
  TeamPace waits;  // enough for pieces, but nobody is so late that one would be alone
  EXPECT_EQ(Runs(waits, {.shares = 1, .pieces = 0.5, .alone = 0.5, .waited = 0.2, .late = 0.2},
                 1000)[TeamWay::kAlone],
            0);
  pace.Took(10, {9, 9});
  EXPECT_EQ(Runs(pace, {.shares = 1, .pieces = 0.5, .alone = 0.5}, 1000)[TeamWay::kShares], 1000);
}

TEST(TeamPace, OneThreadGoesOnWhereItIsFastest) {
  TeamPace pace;
  auto runs = Runs(pace, {.shares = 10, .pieces = 9, .alone = 2, .waited = 9, .late = 8}, 1000);
  EXPECT_GT(runs[TeamWay::kAlone], 600);
  EXPECT_GT(runs[TeamWay::kShares], 0) << "the team is tried again now and then";
  EXPECT_GT(runs[TeamWay::kPieces], 0);
  TeamPace short_runs;
  runs = Runs(short_runs, {.shares = 0.01, .pieces = 0.01, .alone = 0.002, .waited = 0.009, .late = 0.008},
              1000);
  EXPECT_GT(runs[TeamWay::kAlone], 930);
}

TEST(TeamPace, PiecesGoOnWhereTheyAreFastest) {
  TeamPace slow_core;
  auto runs = Runs(slow_core, {.shares = 0.01, .pieces = 0.007, .alone = 0.012, .waited = 0.004}, 1000);
  EXPECT_GT(runs[TeamWay::kPieces], 850);
  EXPECT_EQ(runs[TeamWay::kAlone], 0) << "nobody was late";
  TeamPace busy;
  runs = Runs(busy, {.shares = 0.01, .pieces = 0.005, .alone = 0.006, .waited = 0.009, .late = 0.008}, 1000);
  EXPECT_GT(runs[TeamWay::kPieces], 800);
  EXPECT_GT(runs[TeamWay::kAlone], 0);
}

TEST(TeamPace, EvenSharesComeBackWhenTheirMachineIsQuiet) {
  for (const Weather& busy : {Weather{.shares = 10, .pieces = 9, .alone = 2, .waited = 9, .late = 8},
                              Weather{.shares = 10, .pieces = 5, .alone = 12, .waited = 5}}) {
    TeamPace pace;
    Runs(pace, busy, 1000);
    EXPECT_GE(Runs(pace, {.shares = 1, .pieces = 1.1, .alone = 2}, 100)[TeamWay::kShares], 36);
    EXPECT_EQ(Runs(pace, {.shares = 1, .pieces = 1.1, .alone = 2}, 1000)[TeamWay::kShares], 1000);
  }
}

TEST(TeamPace, WhereOtherWaysAreNoHelpTheyAreSeldomTried) {
  TeamPace pace;
  const Weather weather{.shares = 2, .pieces = 3, .alone = 4, .waited = 1, .late = 1};
  auto runs = Runs(pace, weather, 10000);
  EXPECT_LT(runs[TeamWay::kAlone], 100);
  EXPECT_LT(runs[TeamWay::kPieces], 100);
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

TEST(TeamStream, EveryWayComputesTheSame) {
  std::vector<float> in(64), out(64);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  Doubles kernel;
  kernel.sleeps = true;  // so that thread 0 waits, and soon other ways are tried
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
