#include <gtest/gtest.h>

#include <algorithm>

#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/problem/error_price.h"
#include "graph_tuner/refine/rivals.h"
#include "tests/graph_tuner/support/synthetic.h"

namespace tilesmith {
namespace {

TEST(SplitRivals, AreThePlansWithoutSplitsAndWithoutTuning) {
  int with_records = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = RandomNetwork(seed, 8);
    SyntheticCosts costs(seed);
    costs.seconds_per_crossed_byte = 1e-7;
    GraphTuneOptions options = SyntheticOptions();
    const std::vector<Record> log = SyntheticLog(graph, {0, 1, 8, 16}, seed);
    const NetworkProblem problem(graph, log, costs, options);
    const std::vector<RivalPlan> rivals = SplitRivals(problem, costs);
    ASSERT_FALSE(rivals.empty());
    EXPECT_EQ(rivals[0].name, "even shares");
    const Plan untuned = HeuristicPlan(graph, options.cpu, options.threads);
    EXPECT_TRUE(std::ranges::any_of(
        rivals, [&](const RivalPlan& rival) { return SameSchedules(rival.plan, untuned); }));
    for (const RivalPlan& rival : rivals) {
      EXPECT_GE(rival.plan.predicted_seconds, 0);
      if (rival.name.find("records") == std::string::npos) continue;
      ++with_records;
      EXPECT_TRUE(std::ranges::any_of(
          rival.plan.nodes, [](const NodePlan& node) { return node.record && node.record->seconds > 0; }));
    }
    for (const RivalPlan& rival : SplitRivals(problem, costs, 0))
      EXPECT_EQ(PackedWeightBytes(rival.plan, options.cpu), 0);
    GraphTuneOptions alone = SyntheticOptions();
    alone.threads = 1;
    alone.allow_defaults = true;
    EXPECT_TRUE(SplitRivals(NetworkProblem(graph, log, costs, alone), costs).empty());
  }
  EXPECT_GT(with_records, 5);
}

}  // namespace
}  // namespace tilesmith
