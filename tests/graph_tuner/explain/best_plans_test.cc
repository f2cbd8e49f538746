#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "graph_tuner/explain/explain.h"
#include "graph_tuner/plan/price_plan.h"
#include "tests/graph_tuner/support/explain_sample.h"
#include "tests/graph_tuner/support/plan_enumerator.h"

namespace tilesmith {
namespace {

using Id = Graph::NodeId;
using Choices = std::vector<std::pair<int, int>>;

// The oracle is every plan there is, made and priced without any layout problem.
TEST(BestPlans, AreTheCheapestThatDifferInANode) {
  constexpr int kCount = 6;
  int networks = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ExplainSample sample(seed, 2 + static_cast<int>(seed % 5));
    const NetworkProblem problem = sample.Prepare();
    const SolvedNetwork network = SolveNetwork(problem);
    const BuiltProblem& built = network.built();
    if (Combinations(built) > 200) continue;
    ++networks;
    const auto choices_of = [&](const Plan& plan) {
      Choices choices;
      for (const Id node : PlannedNodes(sample.graph, plan)) {
        const NodeChoice choice = ChosenBy(sample.graph, built, plan, node).value();
        choices.emplace_back(choice.in, choice.out);
      }
      return choices;
    };
    std::map<Choices, double> all;
    PlanEnumerator(sample.graph, problem.candidates()).ForEach([&](Plan& plan) {
      PricePlan(sample.graph, sample.costs, plan);
      const auto [known, added] = all.try_emplace(choices_of(plan), plan.predicted_seconds);
      if (!added) known->second = std::min(known->second, plan.predicted_seconds);
    });
    std::vector<double> totals;
    for (const auto& [choices, total] : all) totals.push_back(total);
    std::ranges::sort(totals);

    const std::vector<RankedPlan> plans = BestPlans(network, kCount);
    ASSERT_EQ(plans.size(), std::min<size_t>(kCount, totals.size()));
    std::set<Choices> seen;
    for (size_t i = 0; i < plans.size(); ++i) {
      EXPECT_NEAR(plans[i].plan.predicted_seconds, totals[i], 1e-9 * totals[i]);
      EXPECT_TRUE(seen.insert(choices_of(plans[i].plan)).second);
      size_t changed = 0;
      const Choices here = choices_of(plans[i].plan), best = choices_of(network.best);
      for (size_t n = 0; n < here.size(); ++n) changed += here[n] != best[n];
      EXPECT_EQ(plans[i].changes.size(), changed);
      for (const NodeChange& change : plans[i].changes) EXPECT_EQ(change.best.node, change.here.node);
    }
  }
  EXPECT_GT(networks, 50);
}

}  // namespace
}  // namespace tilesmith
