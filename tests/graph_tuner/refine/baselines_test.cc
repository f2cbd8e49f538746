#include "graph_tuner/refine/baselines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/graph_tuner/support/synthetic.h"

namespace tilesmith {
namespace {

std::map<std::string, PlannedBaseline> ByName(std::vector<PlannedBaseline> baselines) {
  std::map<std::string, PlannedBaseline> by_name;
  for (PlannedBaseline& baseline : baselines) by_name[baseline.name] = std::move(baseline);
  return by_name;
}

TEST(Baselines, HaveNamesAndRestrictionsOfTheirOwn) {
  const std::vector<Baseline> baselines = Baselines();
  ASSERT_EQ(baselines.size(), 6u);
  EXPECT_EQ(baselines[0].name, "best record of each conv");
  EXPECT_TRUE(baselines[0].restriction.fastest_records);
  EXPECT_FALSE(baselines[0].restriction.uniform);
  EXPECT_EQ(baselines[4].name, "NHWC everywhere");
  EXPECT_EQ(baselines[4].restriction.uniform, Layout::Nhwc());
  EXPECT_FALSE(baselines[4].restriction.fastest_records);
}

TEST(Baselines, TheBestRecordOfEachConvIgnoresLayouts) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = RandomNetwork(seed, 4 + static_cast<int>(seed % 8));
    const std::vector<Record> log = SyntheticLog(graph, {1, 8, 16}, seed);
    SyntheticCosts costs(seed);
    std::map<std::string, double> least;
    for (const Record& record : log) {
      double& seconds = least.try_emplace(WorkloadToString(record.workload), record.seconds).first->second;
      seconds = std::min(seconds, record.seconds);
    }
    const NetworkProblem problem(graph, log, costs, SyntheticOptions());
    const GraphTuneResult best = GraphTune(problem.Restricted(Baselines()[0].restriction));
    for (const NodePlan& node : best.plan.nodes) {
      if (!node.record) continue;
      EXPECT_EQ(node.record->seconds, least.at(WorkloadToString(node.record->workload))) << node.node;
    }
    EXPECT_EQ(best.plan.certificate, "optimal with every workload's fastest record");
    const Plan plan = GraphTune(problem).plan;
    EXPECT_GE(best.plan.predicted_seconds, plan.predicted_seconds * (1 - 1e-9));
  }
}

TEST(Baselines, AreRunOnlyWhereTheyDiffer) {
  Graph graph("net");
  const auto a = AddConv(graph, "a", AddInput(graph, {1, 24, 4, 4}), 24);
  graph.MarkOutput(AddConv(graph, "b", a, 24, 3));
  SyntheticCosts costs(1);
  // NCHW8c is fastest by far, a alone can write NCHW16c, and nothing writes NCHW32c.
  std::vector<Record> log;
  for (const char* name : {"a", "b"}) {
    const ConvWorkload& workload = graph.As<ConvOp>(*graph.Find(name))->workload();
    for (int64_t block : {1, 8, 0})
      log.push_back(SyntheticRecord(workload, block, block, block == 8 ? 1 : 9));
    if (name[0] == 'a') log.push_back(SyntheticRecord(workload, 16, 16, 9));
  }
  const NetworkProblem problem(graph, log, costs, SyntheticOptions());
  const Plan plan = GraphTune(problem).plan;
  std::vector<PlannedBaseline> all = PlanBaselines(problem);
  auto baselines = ByName(all);
  ASSERT_EQ(baselines.size(), 6u);
  EXPECT_TRUE(SameSchedules(*baselines["best record of each conv"].plan, plan));
  EXPECT_EQ(baselines["best record of each conv"].note, "");
  EXPECT_EQ(baselines["NCHW8c everywhere"].note, "the same as best record of each conv");
  EXPECT_EQ(baselines["NCHW32c everywhere"].note, "no candidate in NCHW32c");
  EXPECT_EQ(baselines["NCHW16c everywhere"].note, "1 of 2 convolutions in it");
  EXPECT_EQ(baselines["NCHW everywhere"].note, "");
  EXPECT_EQ(baselines["NHWC everywhere"].note, "");
  for (const auto& [name, baseline] : baselines) {
    const bool differs = baseline.note.empty() || baseline.note.starts_with("1 of 2");
    EXPECT_EQ(baseline.plan.has_value(), differs) << name;
  }
  DropPlan(plan, all);
  for (const PlannedBaseline& baseline : all) {
    const bool dropped = baseline.name == "best record of each conv";
    EXPECT_EQ(baseline.note == "the same as the plan", dropped) << baseline.name;
    if (baseline.plan) {
      EXPECT_FALSE(SameSchedules(*baseline.plan, plan)) << baseline.name;
    }
  }
}

TEST(Baselines, OfUntunedNetworksAreTheirDefaults) {
  const Graph graph = RandomNetwork(4, 8);
  SyntheticCosts costs(1);
  GraphTuneOptions options = SyntheticOptions();
  options.allow_defaults = true;
  const NetworkProblem problem(graph, std::vector<Record>(), costs, options);
  const Plan plan = GraphTune(problem).plan;
  std::vector<PlannedBaseline> baselines = PlanBaselines(problem);
  DropPlan(plan, baselines);
  EXPECT_EQ(baselines[0].note, "the same as the plan");
  for (const PlannedBaseline& baseline : baselines) {
    SCOPED_TRACE(baseline.name);
    EXPECT_FALSE(baseline.plan.has_value());  // there is one candidate for each conv
    EXPECT_NE(baseline.note, "");
  }
}

}  // namespace
}  // namespace tilesmith
