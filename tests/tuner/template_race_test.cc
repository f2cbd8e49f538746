#include <gtest/gtest.h>

#include <array>

#include "tuner/task_tuner.h"

namespace tilesmith {
namespace {

std::array<int, 3> Turns(TemplateRace& race, std::array<double, 3> seconds, int turns) {
  std::array<int, 3> counts = {};
  for (int i = 0; i < turns; ++i) {
    const std::optional<size_t> runner = race.Next();
    if (!runner) break;
    ++counts[*runner];
    race.Tried(*runner, seconds[*runner]);
  }
  return counts;
}

TEST(TemplateRace, FavoursTheLeaderKeepsTheCloseAndDropsTheRest) {
  TemplateRace race(3);
  const std::array<int, 3> counts = Turns(race, {1.2, 1.0, 9.0}, 33);
  EXPECT_EQ(counts[2], 2) << "far behind after its first batch";
  EXPECT_GE(counts[0], 8);
  EXPECT_GE(counts[1], 18);
}

TEST(TemplateRace, OneTrialOfEachDecidesWhoseFirstBatchIsNext) {
  TemplateRace race(3);
  const std::array<double, 3> seconds = {2.0, 3.0, 1.0};
  std::vector<size_t> order;
  for (int i = 0; i < 6; ++i) {
    const size_t runner = race.Next().value();
    EXPECT_EQ(race.NextUntried() == runner, i < 3);
    order.push_back(runner);
    race.Tried(runner, seconds[runner]);
  }
  EXPECT_EQ(order, (std::vector<size_t>{0, 1, 2, 2, 0, 1}));
}

TEST(TemplateRace, ExhaustionLeavesTheTurnsToTheOthers) {
  TemplateRace race(3);
  Turns(race, {1.2, 1.0, 9.0}, 6);
  race.Exhausted(1);
  race.Exhausted(0);
  EXPECT_EQ(race.Next(), 2u);
  race.Exhausted(2);
  EXPECT_EQ(race.Next(), std::nullopt);
}

TEST(TemplateRace, GoesOnWhileNothingWorks) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  TemplateRace race(3);
  const std::array<int, 3> counts = Turns(race, {kNever, kNever, kNever}, 9);
  EXPECT_EQ(counts[0] + counts[1] + counts[2], 9);
  for (int count : counts) EXPECT_GE(count, 1);
}

}  // namespace
}  // namespace tilesmith
