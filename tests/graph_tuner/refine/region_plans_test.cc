// Variants of made-up plans in which layers are in regions, and measurements that nobody made.
#include "graph_tuner/refine/region_plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "ops/pool/pool.h"
#include "tests/graph_tuner/support/executor_testing.h"
#include "tests/graph_tuner/support/region_plans.h"
#include "tests/graph_tuner/support/synthetic.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

// Every image of these networks is too large for its caches.
Target SmallCaches() {
  Target cpu = TestCpu();
  cpu.l2_bytes = 64 << 10;
  return cpu;
}

Graph BeginNetwork() {
  Graph graph("images");
  graph.Add("x", std::make_shared<InputOp>(Shape{1, 16, 96, 24}), {});
  return graph;
}

Graph ChainOfConvs() {
  Graph graph = BeginNetwork();
  NodeId x = 0;
  for (const char* name : {"a", "b", "c"}) x = AddFilledConv(graph, name, {x}, 16, 3);
  graph.MarkOutput(x);
  return graph;
}

// In regions each node takes half of the millisecond that it takes by itself, but for those of `slow`.
std::vector<PlanMeasurement> MadeUp(const std::vector<const Plan*>& plans,
                                    const std::set<std::string>& slow = {}) {
  std::vector<PlanMeasurement> measurements;
  for (const Plan* plan : plans) {
    PlanMeasurement& made = measurements.emplace_back();
    for (const NodePlan& node : plan->nodes) {
      StepProfile& step = made.steps.emplace_back();
      step.node = node.node;
      step.seconds = node.region == 0 ? 1e-3 : slow.contains(node.node) ? 2e-3 : 0.5e-3;
      made.seconds += step.seconds;
    }
  }
  return measurements;
}

// The plans that are run; RegionRivals is left there.
std::vector<Plan> PlansRun(const Graph& graph, const Plan& plan) {
  std::vector<Plan> run;
  SyntheticCosts costs(1);
  try {
    RegionRivals(graph, plan, {}, costs, SmallCaches(), [&](const std::vector<const Plan*>& plans) {
      for (const Plan* one : plans) run.push_back(*one);
      throw Error(ErrorCode::kInterrupted, "that is all");
      return std::vector<PlanMeasurement>();
    });
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInterrupted);
  }
  return run;
}

std::set<std::string> NodesInRegions(const Plan& plan) {
  std::set<std::string> nodes;
  for (const NodePlan& node : plan.nodes)
    if (node.region > 0) nodes.insert(node.node);
  return nodes;
}

TEST(RegionPlans, LayersThatTakeLessInRegionsAreInThem) {
  const Graph graph = ChainOfConvs();
  const Plan plan = FewRowsPlan(graph, SmallCaches(), 1);
  SyntheticCosts costs(1);
  const auto rivals = [&](const std::set<std::string>& slow) {
    return RegionRivals(graph, plan, {}, costs, SmallCaches(),
                        [&](const std::vector<const Plan*>& plans) { return MadeUp(plans, slow); });
  };
  const std::vector<RivalPlan> fast = rivals({});
  ASSERT_FALSE(fast.empty());
  EXPECT_EQ(NodesInRegions(fast[0].plan), std::set<std::string>({"a", "b", "c"}));
  EXPECT_TRUE(rivals({"a", "b", "c"}).empty());
}

// Records that say that their configs compute other layouts than they do.
TEST(RegionPlans, VariantsThatDoNotCompileAreLeftOut) {
  const Graph graph = ChainOfConvs();
  Plan plan = FewRowsPlan(graph, SmallCaches(), 1);
  EXPECT_GT(PlansRun(graph, plan).size(), 1u);
  for (NodePlan& node : plan.nodes) node.record->layouts = {Layout::Nchw(), Layout::Nchw()};
  EXPECT_TRUE(PlansRun(graph, plan).empty());
}

TEST(RegionPlans, NoRegionNeedsWhatOthersMakeOfItsResults) {
  Graph graph = BeginNetwork();
  const NodeId a = AddFilledConv(graph, "a", {0}, 16, 3), b = AddFilledConv(graph, "b", {a}, 16, 3);
  const NodeId mean = graph.Add("mean", std::make_shared<GlobalPoolOp>(PoolKind::kAverage), {b});
  const NodeId gate = graph.Add("gate", std::make_shared<BinaryOp>(BinaryKind::kMul), {b, mean});
  graph.MarkOutput(AddFilledConv(graph, "c", {gate}, 16, 3));
  const std::vector<Plan> plans = PlansRun(graph, FewRowsPlan(graph, SmallCaches(), 1));
  ASSERT_GT(plans.size(), 1u);
  for (size_t i = 1; i < plans.size(); ++i) {
    std::map<std::string, int> region;
    for (const NodePlan& node : plans[i].nodes) region[node.node] = node.region;
    EXPECT_EQ(plans[i].regions.size(), 2u);
    EXPECT_EQ(region["a"], region["b"]);
    EXPECT_EQ(region["gate"], region["c"]);
    EXPECT_EQ(region["mean"], 0);
  }
}

// Residual blocks and, further apart, skips from one to another.
TEST(RegionPlans, LongNetworksAreInRegionsAltogether) {
  constexpr int kBlocks = 340;
  Graph graph = BeginNetwork();
  NodeId x = 0;
  std::vector<NodeId> skips;
  for (int i = 0; i < kBlocks; ++i) {
    const std::string name = std::to_string(i);
    const NodeId a = AddFilledConv(graph, "a" + name, {x}, 16), b = AddFilledConv(graph, "b" + name, {x}, 16);
    x = AddSum(graph, "sum" + name, a, i % 10 == 9 ? skips.back() : b);
    if (i % 10 == 9) graph.MarkOutput(b);
    if (i % 5 == 0) skips.push_back(x);
  }
  graph.MarkOutput(x);
  const std::vector<Plan> plans = PlansRun(graph, FewRowsPlan(graph, SmallCaches(), 1));
  ASSERT_GT(plans.size(), 1u);
  for (size_t i = 1; i < plans.size(); ++i) EXPECT_GE(NodesInRegions(plans[i]).size(), 2u * kBlocks);
}

}  // namespace
}  // namespace tilesmith
