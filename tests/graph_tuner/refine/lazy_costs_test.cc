#include "graph_tuner/refine/lazy_costs.h"

#include <gtest/gtest.h>

#include "graph_tuner/plan/price_plan.h"
#include "tests/graph_tuner/support/synthetic.h"

namespace tilesmith {
namespace {

// The cheapest solution whose costs are all known, as OptimizeNetwork finds it.
Plan SolveLazily(const Graph& graph, const std::vector<Record>& log, LazyCosts& costs) {
  for (;;) {
    const Plan plan = GraphTune(graph, log, costs, SyntheticOptions()).plan;
    if (costs.Measure(graph, plan) == 0) return plan;
  }
}

TEST(LazyCostsTest, FindsTheOptimumAndAsksForFewCosts) {
  int all = 0, asked = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = RandomNetwork(seed, 4 + static_cast<int>(seed % 8));
    const std::vector<Record> log = SyntheticLog(graph, {1, 8, 16}, seed);
    SyntheticCosts known(seed), measured(seed);
    const Plan best = GraphTune(graph, log, known, SyntheticOptions()).plan;
    // SyntheticCosts are of the size of a microsecond an element: what is guessed before anything was
    // measured is less by far, and the guesses by what was measured are not always.
    LazyCosts lazy(measured);
    const Plan plan = SolveLazily(graph, log, lazy);
    EXPECT_GE(plan.predicted_seconds, best.predicted_seconds * (1 - 1e-9));
    EXPECT_LE(plan.predicted_seconds, best.predicted_seconds * 1.25);
    all += known.asked;
    asked += measured.asked;
  }
  EXPECT_LT(asked, all / 2);
}

TEST(LazyCostsTest, AGuessStaysUntilItIsMeasured) {
  SyntheticCosts measured(1);
  measured.seconds_per_crossed_byte = 1e-7;
  LazyCosts lazy(measured);
  const Graph graph = RandomNetwork(3, 8);
  const std::vector<Record> log = SyntheticLog(graph, {1, 8}, 3);
  const Plan plan = GraphTune(graph, log, lazy, SyntheticOptions()).plan;
  EXPECT_EQ(measured.asked, 0);
  EXPECT_GT(plan.predicted_seconds, 0);
  EXPECT_NEAR(lazy.PricesOfCrossing().Seconds(Crossing::kRead, 1e6), 0.1, 1e-9) << "no guess";
  const double guess = lazy.TransformSeconds({1, 8, 3, 3}, Layout::Nchw(), Layout::Parse("NCHW8c"));
  EXPECT_GT(guess, 0);
  EXPECT_EQ(lazy.TransformSeconds({1, 8, 3, 3}, Layout::Nchw(), Layout::Nchw()), 0);
  std::vector<size_t> told;
  const size_t questions = lazy.Measure(graph, plan, [&](size_t done, size_t) { told.push_back(done); });
  EXPECT_GT(questions, 0u);
  EXPECT_EQ(told.size(), questions);
  EXPECT_EQ(lazy.Measure(graph, plan), 0u) << "all of it is known";
  Plan lazily = plan, truly = plan;
  PricePlan(graph, lazy, lazily);
  PricePlan(graph, measured, truly);
  EXPECT_DOUBLE_EQ(lazily.predicted_seconds, truly.predicted_seconds);
}

}  // namespace
}  // namespace tilesmith
