#include "layouts/measure/duel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "layouts/measure/quantile.h"
#include "layouts/measure/rounds.h"
#include "tests/support/random.h"

namespace tilesmith {
namespace {

TEST(DuelTest, ContestantsAlternateAndRatiosArePaired) {
  std::vector<int> order;
  const std::vector<Contestant> contestants{{"a", [&] { order.push_back(0); }, {}},
                                            {"b", [&] { order.push_back(1); }, {}},
                                            {"c", [&] { order.push_back(2); }, {}}};
  const DuelRounds rounds = RunDuel(contestants, {1e-9, false}).rounds;
  EXPECT_EQ(static_cast<int>(rounds.size()), kMinRounds);
  std::vector<int> blocks;
  for (int who : order) {
    if (blocks.empty() || blocks.back() != who) blocks.push_back(who);
  }
  // One block each to begin with, then rounds that start with a, b, c, a, b; neighbours of a kind merge.
  EXPECT_EQ(blocks, (std::vector<int>{0, 1, 2, 0, 1, 2, 1, 2, 0, 2, 0, 1, 0, 1, 2, 1, 2, 0}));
}

TEST(DuelTest, MedianRatioSurvivesDisturbedRounds) {
  DuelRounds rounds;
  for (int i = 0; i < 21; ++i) {
    const double drift = 1 + 0.5 * i;  // the machine slows down; both suffer alike
    rounds.push_back({drift, 1.25 * drift});
  }
  rounds[3][0] *= 10;
  rounds[7][1] *= 10;
  const PairedRatio ratio = RatioOf(rounds, 0, 1);
  EXPECT_DOUBLE_EQ(ratio.median, 1.25);
  EXPECT_DOUBLE_EQ(ratio.p10, 1.25);
  EXPECT_DOUBLE_EQ(ratio.p90, 1.25);
  EXPECT_DOUBLE_EQ(Quantile({3, 1, 2}, 0.25), 1.5);
}

TEST(DuelTest, RoundsAreAsManyAsAskedFor) {
  const std::vector<Contestant> contestants{{"a", [] {}, {}}};
  EXPECT_EQ(RunDuel(contestants, {.seconds = 1e-9, .cold = false, .min_rounds = 12}).rounds.size(), 12u);
}

// Cores that compute on their own, with barriers of so many seconds.
CorePlacement Apart(double barrier_seconds) { return {barrier_seconds, 10}; }
PlacementRange Apart(double least, double most) { return {Apart(least), Apart(most)}; }

// Cores that share one: near, and arithmetic takes twice as long.
const PlacementRange kShared = {{1, 20}, {1, 21}};

TEST(PlacementRangeTest, SpansWhatIsIncluded) {
  PlacementRange range;
  for (const CorePlacement& placement : {CorePlacement{2, 5}, {1, 6}, {3, 4}}) range.Include(placement);
  EXPECT_EQ(range.least, (CorePlacement{1, 4}));
  EXPECT_EQ(range.most, (CorePlacement{3, 6}));
}

// The cores' placement before the first turn and after each.
PlacementRange RoundOnMovingCores(const std::vector<CorePlacement>& placements, std::vector<size_t>& order,
                                  const CorePlacement& preferred = {}) {
  size_t turns = 0;
  order.clear();
  const auto at = [&](size_t moment) { return placements.at(std::min(moment, placements.size() - 1)); };
  return TakeRound(1, 3, preferred, [&](size_t contestant) {
    order.push_back(contestant);
    PlacementRange seen;
    seen.Include(at(turns));
    seen.Include(at(++turns));
    return seen;
  });
}

TEST(AlikeRoundsTest, TurnsThatSawTheCoresMoveAreTakenAgain) {
  using Order = std::vector<size_t>;
  const CorePlacement near = Apart(1), far = Apart(3);
  Order order;
  PlacementRange seen = RoundOnMovingCores({near, near, Apart(1.1), near}, order);
  EXPECT_EQ(order, Order({1, 2, 0})) << "nothing moved";
  EXPECT_EQ(seen.most, Apart(1.1));

  seen = RoundOnMovingCores({near, far, far, far}, order);
  EXPECT_EQ(order, Order({1, 2, 0, 1})) << "the first turn saw both";
  EXPECT_EQ(seen.least, far);

  for (const CorePlacement& elsewhere : {far, kShared.least}) {
    seen = RoundOnMovingCores({near, near, elsewhere, near}, order);
    EXPECT_EQ(order, Order({1, 2, 0, 0, 2})) << "a visit elsewhere spoils two";
    EXPECT_EQ(seen.most, near);
  }

  seen = RoundOnMovingCores({near, near, near, near, far}, order);
  EXPECT_EQ(order, Order({1, 2, 0})) << "what comes after the round is not looked at";

  seen = RoundOnMovingCores({near, near, far, far, near}, order, near);
  EXPECT_EQ(order, Order({1, 2, 0, 0, 0, 2})) << "far at the end, but one turn was as preferred";
  EXPECT_EQ(seen.most, near);
}

TEST(PlacedSamplesTest, ThoseThatSawTheCoresMoveDoNotCount) {
  const std::vector<CorePlacement> placements = {Apart(1), Apart(1), Apart(3), Apart(3), Apart(1), Apart(1)};
  size_t looks = 0;
  int next = 0;
  const auto samples = TakePlacedSamples([&] { return placements.at(looks++); }, [&] { return next++; },
                                         [](size_t taken) { return taken < 5; });
  EXPECT_EQ(samples.values, std::vector<int>({0, 1, 2, 3, 4}));
  PlacementRange seen;
  EXPECT_EQ(ComparableSamples(samples, {}, seen), std::vector<int>({0, 4}));
  EXPECT_EQ(seen.most, Apart(1));
  EXPECT_EQ(ComparableSamples(samples, Apart(3), seen), std::vector<int>({2}));
  EXPECT_EQ(seen.most, Apart(3));
}

TEST(PlacedSamplesTest, AllCountWhereEachSawThemMove) {
  size_t looks = 0;
  const auto samples = TakePlacedSamples([&] { return Apart(looks++ % 2 == 0 ? 1 : 3); }, [] { return 7; },
                                         [](size_t taken) { return taken < 3; });
  PlacementRange seen;
  EXPECT_EQ(ComparableSamples(samples, {}, seen), std::vector<int>({7, 7, 7}));
  EXPECT_EQ(seen.least, Apart(1));
  EXPECT_EQ(seen.most, Apart(3));
}

TEST(AlikeRoundsTest, ARoundEndsOnCoresThatNeverStandStill) {
  std::vector<CorePlacement> placements;
  for (int i = 0; i < 9; ++i) placements.push_back(Apart(i % 2 == 0 ? 1 : 3));
  std::vector<size_t> order;
  const PlacementRange seen = RoundOnMovingCores(placements, order);
  EXPECT_EQ(order.size(), 6u);
  EXPECT_EQ(seen.least, Apart(1));
  EXPECT_EQ(seen.most, Apart(3));
}

TEST(AlikeRoundsTest, TheLargestSetIsKept) {
  using Indices = std::vector<size_t>;
  EXPECT_EQ(AlikeRounds({}), Indices());
  EXPECT_EQ(AlikeRounds({{}, {}}), Indices({0, 1})) << "one thread";
  // near, far, on the move, far a little less, far
  EXPECT_EQ(AlikeRounds({Apart(1, 1.1), Apart(3, 3.2), Apart(1, 3), Apart(2.5, 3.3), Apart(3, 3)}),
            Indices({1, 3, 4}));
  EXPECT_EQ(AlikeRounds({Apart(3, 3), Apart(1, 1)}), Indices({1})) << "of equally many the nearer ones";
  EXPECT_EQ(AlikeRounds({kShared, Apart(3, 3)}), Indices({1})) << "of equally many those that compute faster";
  EXPECT_EQ(AlikeRounds({kShared, Apart(1, 1), kShared}), Indices({0, 2}));
  EXPECT_EQ(AlikeRounds({Apart(1, 4)}), Indices()) << "a round that is not alike within itself";
  EXPECT_EQ(AlikeRounds({{Apart(1), kShared.most}}), Indices())
      << "nor one whose cores shared one for a while";
}

TEST(AlikeRoundsTest, TooFewMakeAllComparable) {
  using Indices = std::vector<size_t>;
  const std::vector<PlacementRange> rounds = {Apart(1, 1), Apart(3, 3), Apart(3, 3.1), Apart(1, 3)};
  EXPECT_EQ(ComparableRounds(rounds, {}, 2), Indices({1, 2}));
  EXPECT_EQ(ComparableRounds(rounds, {}, 3), Indices({0, 1, 2, 3}));
  EXPECT_TRUE(EnoughAreAlike(rounds, {}, 2));
  EXPECT_FALSE(EnoughAreAlike(rounds, {}, 3));
}

TEST(AlikeRoundsTest, APreferredPlacementCountsWhereItWasSeenOftenEnough) {
  using Indices = std::vector<size_t>;
  const std::vector<PlacementRange> rounds = {Apart(1, 1), Apart(3, 3),     Apart(3, 3.1), Apart(3, 3),
                                              kShared,     Apart(1.1, 1.2), Apart(1, 3)};
  EXPECT_EQ(ComparableRounds(rounds, {}, 2), Indices({1, 2, 3}));
  EXPECT_EQ(ComparableRounds(rounds, Apart(1.2), 2), Indices({0, 5}));
  EXPECT_EQ(ComparableRounds(rounds, Apart(1.2), 3), Indices({1, 2, 3})) << "too few of the preferred ones";
  EXPECT_TRUE(EnoughAreAlike(rounds, Apart(1.2), 2));
  EXPECT_FALSE(EnoughAreAlike(rounds, Apart(1.2), 3)) << "and waiting for more of them may help";
}

TEST(AlikeRoundsTest, ComparableOnesKeepTheirPlacements) {
  const Duel duel{{{10, 11}, {30, 33}, {31, 32}}, {Apart(1, 1), Apart(3, 3), Apart(3, 4)}};
  const Duel comparable = Comparable(duel, {}, 2);
  EXPECT_EQ(comparable.rounds, (DuelRounds{{30, 33}, {31, 32}}));
  EXPECT_EQ(MedianPlacement(comparable.placements), Apart(3.25));
}

TEST(DuelTest, MedianIntervalIsBetweenOrderStatistics) {
  std::vector<double> values;
  const auto interval = [&](int count) {
    values.clear();
    for (int i = count; i > 0; --i) values.push_back(i);
    return MedianInterval(values);
  };
  using Pair = std::pair<double, double>;
  // The k of tables of the sign test, two-sided 5%.
  EXPECT_EQ(interval(1), Pair(1, 1));
  EXPECT_EQ(interval(5), Pair(1, 5));
  EXPECT_EQ(interval(8), Pair(1, 8));
  EXPECT_EQ(interval(9), Pair(2, 8));
  EXPECT_EQ(interval(12), Pair(3, 10));
  EXPECT_EQ(interval(20), Pair(6, 15));
  EXPECT_EQ(interval(100), Pair(40, 61));
}

// The distribution is skewed, and its median is ln 2.
TEST(DuelTest, MedianIntervalHoldsTheMedianAsOftenAsItSays) {
  constexpr int kDraws = 4000;
  for (const int count : {12, 25, 60}) {
    SCOPED_TRACE(testing::Message() << count << " values, seed " << count);
    TestRandom random{static_cast<uint64_t>(count)};
    int inside = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
      std::vector<double> values;
      for (int i = 0; i < count; ++i)
        values.push_back(-std::log(1 - static_cast<double>(random.Uniform(0, 1))));
      const auto [low, high] = MedianInterval(std::move(values));
      inside += low <= std::numbers::ln2 && std::numbers::ln2 <= high;
    }
    EXPECT_GE(inside, 0.94 * kDraws);
    EXPECT_LE(inside, 0.99 * kDraws);
  }
}

}  // namespace
}  // namespace tilesmith
