#include "tuner/search/searcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "layouts/base/error.h"
#include "tests/tuner/support/fake_template.h"
#include "tests/tuner/support/measured_configs.h"
#include "tuner/cost_model/training_history.h"
#include "tuner/search/config_sampling.h"

namespace tilesmith {
namespace {

SearchProblem Problem(const ConvTemplate& conv_template, uint64_t seed) {
  SearchProblem problem;
  problem.workload = ParseWorkload("mb1ic64ih14oc64oh14kh3ph1");
  problem.conv_template = &conv_template;
  problem.space = conv_template.Space(problem.workload, problem.cpu);
  problem.seed = seed;
  return problem;
}

std::vector<Config> Drain(Searcher& searcher, const FakeTemplate& fake, size_t limit, size_t batch) {
  std::vector<Config> all;
  while (all.size() < limit) {
    const std::vector<Config> configs = searcher.NextBatch(std::min(batch, limit - all.size()));
    if (configs.empty()) break;
    std::vector<TrialOutcome> outcomes;
    for (const Config& config : configs) outcomes.push_back({config, fake.Seconds(config), false});
    searcher.Update(outcomes);
    all.insert(all.end(), configs.begin(), configs.end());
  }
  return all;
}

class EverySearcher : public ::testing::TestWithParam<std::string_view> {
 protected:
  std::unique_ptr<Searcher> Make(const ConvTemplate& conv_template, uint64_t seed = 1) {
    return FindSearcher(GetParam()).make(Problem(conv_template, seed));
  }
};

TEST_P(EverySearcher, VisitsEveryValidConfigOfASmallSpaceOnce) {
  const FakeTemplate fake;
  const ConfigSpace space = fake.Space({}, {});
  const auto searcher = Make(fake);
  const std::vector<Config> all = Drain(*searcher, fake, 1000000, 7);
  std::set<std::string> distinct;
  for (const Config& config : all) {
    EXPECT_EQ(space.WhyInvalid(config), "");
    distinct.insert(config.ToString());
  }
  EXPECT_EQ(distinct.size(), all.size()) << "none twice";
  EXPECT_EQ(all.size(), *space.CountValid());
}

TEST_P(EverySearcher, ReturnsNothingItWasToldAbout) {
  const FakeTemplate fake;
  const auto scout = Make(fake);
  const std::vector<Config> known = Drain(*scout, fake, 40, 8);
  std::vector<TrialOutcome> outcomes;
  for (const Config& config : known) outcomes.push_back({config, fake.Seconds(config), false});
  Config foreign;
  foreign.Set("no_such_knob", 1);
  outcomes.push_back({foreign, 1.0, false});
  const auto searcher = Make(fake);
  searcher->Update(outcomes);
  const std::vector<Config> all = Drain(*searcher, fake, 1000000, 16);
  EXPECT_EQ(all.size() + known.size(), *fake.Space({}, {}).CountValid());
  for (const Config& config : all) EXPECT_EQ(std::count(known.begin(), known.end(), config), 0);
}

TEST_P(EverySearcher, IsDeterministicGivenSeedAndOutcomes) {
  const FakeTemplate fake;
  EXPECT_EQ(Drain(*Make(fake, 5), fake, 100, 10), Drain(*Make(fake, 5), fake, 100, 10));
  if (GetParam() != "grid") {
    EXPECT_NE(Drain(*Make(fake, 5), fake, 100, 10), Drain(*Make(fake, 6), fake, 100, 10));
  }
}

TEST_P(EverySearcher, FindsValidConfigsInAHugeSparseSpace) {
  const FakeTemplate huge(FakeTemplate::Size::kHugeSparse);
  const ConfigSpace space = huge.Space({}, {});
  ASSERT_GT(space.size(), uint64_t{1} << 26);
  const std::vector<Config> found = Drain(*Make(huge), huge, 200, 20);
  EXPECT_EQ(found.size(), 200u);
  for (const Config& config : found) EXPECT_EQ(space.WhyInvalid(config), "");
}

INSTANTIATE_TEST_SUITE_P(Searchers, EverySearcher,
                         ::testing::Values("grid", "random", "ga", "coordinate", "xgb", "xgb-rank"),
                         [](const auto& info) {
                           std::string name(info.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Searchers, AreListedAndFound) {
  EXPECT_EQ(Searchers().size(), 6u) << "add new ones to EverySearcher above";
  try {
    FindSearcher("annealing");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr(
                    "unknown tuner \"annealing\" (known: xgb, xgb-rank, coordinate, ga, random, grid)"));
  }
}

class GuidedSearcher : public ::testing::TestWithParam<std::string_view> {};

// Coordinate descent has its own below: hardly a valid config of this space has a valid neighbour.
TEST_P(GuidedSearcher, BeatsRandomOnAStructuredSpace) {
  const FakeTemplate huge(FakeTemplate::Size::kHugeSparse);
  int better = 0;
  constexpr int kSeeds = 10;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const auto best = [&](std::string_view name) {
      const auto searcher = FindSearcher(name).make(Problem(huge, seed));
      double seconds = 1e9;
      for (const Config& config : Drain(*searcher, huge, 200, 16))
        seconds = std::min(seconds, huge.Seconds(config));
      return seconds;
    };
    better += best(GetParam()) < best("random");
  }
  EXPECT_GE(better, 8);
}

TEST_P(EverySearcher, CopesWithFailuresOnly) {
  const FakeTemplate fake;
  const auto searcher = Make(fake, 3);
  size_t told = 0;
  while (told < 64) {
    std::vector<TrialOutcome> outcomes;
    for (const Config& config : searcher->NextBatch(16)) outcomes.push_back({config, std::nullopt, false});
    ASSERT_FALSE(outcomes.empty());
    told += outcomes.size();
    searcher->Update(outcomes);
  }
}

INSTANTIATE_TEST_SUITE_P(Searchers, GuidedSearcher, ::testing::Values("ga", "xgb", "xgb-rank"),
                         [](const auto& info) {
                           std::string name(info.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(ModelSearcher, TriesWhatWasFastestInSimilarTasksFirst) {
  const std::vector<Record> similar = MeasuredConfigs("ic64ih28oc64oh28kh3ph1", 60, 1);
  auto history = std::make_shared<TrainingHistory>();
  for (const Record& record : similar) history->Add(record);
  for (const Record& record : MeasuredConfigs("ic1024ih7oc256oh7kh1", 60, 2)) history->Add(record);
  const Config& fastest = std::ranges::min_element(similar, {}, &Record::seconds)->config;

  SearchProblem problem;
  problem.workload = ParseWorkload(kSampleWorkload);
  problem.cpu = similar[0].target;
  problem.conv_template = &FindConvTemplate("direct");
  problem.space = problem.conv_template->Space(problem.workload, problem.cpu);
  const Config base = problem.conv_template->Default(problem.workload, problem.cpu);
  const Config expected = NearestConfig(problem.space, base, fastest).value();
  for (const char* name : {"xgb", "xgb-rank"}) {
    problem.history = history;
    EXPECT_THAT(FindSearcher(name).make(problem)->NextBatch(8), ::testing::Contains(expected)) << name;
    problem.history = nullptr;
    EXPECT_THAT(FindSearcher(name).make(problem)->NextBatch(8), ::testing::Not(::testing::Contains(expected)))
        << name;
  }
}

TEST(CoordinateSearcher, BeatsRandomWhereKnobsAreIndependent) {
  const FakeTemplate fake;
  const auto trials = [&](std::string_view name) {
    size_t sum = 0;
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      const std::vector<Config> all = Drain(*FindSearcher(name).make(Problem(fake, seed)), fake, 1000, 8);
      const auto best = std::min_element(all.begin(), all.end(), [&](const Config& a, const Config& b) {
        return fake.Seconds(a) < fake.Seconds(b);
      });
      sum += static_cast<size_t>(best - all.begin());
    }
    return sum;
  };
  EXPECT_LT(2 * trials("coordinate"), trials("random"));
}

// Times that differ by less than their errors: the search must not wander off after noise.
TEST(CoordinateSearcher, MovesOnlyOnSignificantGains) {
  const FakeTemplate fake;
  const auto neighbours_tried = [&](double relative_error) {
    const auto searcher = MakeCoordinateSearcher(Problem(fake, 7));
    std::set<int64_t> tiles;
    for (int batch = 0; batch < 12; ++batch) {
      std::vector<TrialOutcome> outcomes;
      for (const Config& config : searcher->NextBatch(4)) {
        tiles.insert(config.Get("tile") * 100 + config.Get("rows"));
        outcomes.push_back({config, fake.Seconds(config), false, relative_error});
      }
      searcher->Update(outcomes);
    }
    return tiles;
  };
  EXPECT_TRUE(neighbours_tried(1e-6).contains(804)) << "the best is found when times are exact";
  EXPECT_NE(neighbours_tried(1e-6), neighbours_tried(10.0)) << "errors count";
}

}  // namespace
}  // namespace tilesmith
