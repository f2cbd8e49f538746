#include "layouts/measure/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace tilesmith {
namespace {

using testing::ElementsAre;

TEST(SamplingPlan, WantsTheFewestThenWhatTheTimeAllowsUpToTheMost) {
  constexpr SamplingPlan kPlan = {.min_samples = 3, .max_samples = 5, .seconds = 1};
  EXPECT_TRUE(kPlan.WantsMore(0, 0));
  EXPECT_TRUE(kPlan.WantsMore(2, 100));
  EXPECT_FALSE(kPlan.WantsMore(3, 1));
  EXPECT_TRUE(kPlan.WantsMore(4, 0.5));
  EXPECT_FALSE(kPlan.WantsMore(5, 0));
}

TEST(TakeSamples, CountsWhatIsThereAndTheTimeSinceItsBeginning) {
  double next = 0;
  const auto take = [&] { return ++next; };
  std::vector<double> samples = {7};
  TakeSamples({.min_samples = 2, .max_samples = 4, .seconds = 1000}, take, samples);
  EXPECT_THAT(samples, ElementsAre(7, 1, 2, 3));
  samples.clear();
  TakeSamples({.min_samples = 1, .max_samples = 4, .seconds = 1000}, take, samples, NowSeconds() - 2000);
  EXPECT_THAT(samples, ElementsAre(4));
}

TEST(TakeSamples, LeavesWhatWasTakenBeforeAnError) {
  std::vector<double> samples;
  const auto take = [&] { return samples.size() == 2 ? throw std::runtime_error("stop") : 1.0; };
  EXPECT_THROW(TakeSamples({.min_samples = 5, .max_samples = 5, .seconds = 0}, take, samples),
               std::runtime_error);
  EXPECT_EQ(samples.size(), 2u);
}

TEST(TimeRuns, TakesAsManyAsAskedFor) {
  int runs = 0;
  const std::vector<double> seconds = TimeRuns(7, [&] { ++runs; });
  EXPECT_EQ(runs, 7);
  EXPECT_EQ(seconds.size(), 7u);
  for (const double sample : seconds) EXPECT_GE(sample, 0);
}

}  // namespace
}  // namespace tilesmith
