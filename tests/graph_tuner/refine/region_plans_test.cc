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
using testing::ElementsAre;

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

// a, b, the mean of its rows, their product, c.
Graph GatedConvs() {
  Graph graph = BeginNetwork();
  const NodeId a = AddFilledConv(graph, "a", {0}, 16, 3), b = AddFilledConv(graph, "b", {a}, 16, 3);
  const NodeId mean = graph.Add("mean", std::make_shared<GlobalPoolOp>(PoolKind::kAverage), {b});
  const NodeId gate = graph.Add("gate", std::make_shared<BinaryOp>(BinaryKind::kMul), {b, mean});
  graph.MarkOutput(AddFilledConv(graph, "c", {gate}, 16, 3));
  return graph;
}

TEST(RegionPlans, NoRegionNeedsWhatOthersMakeOfItsResults) {
  const Graph graph = GatedConvs();
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

RegionFacts Facts(const Graph& graph, const Plan& plan, const std::string& node, Target cpu = SmallCaches()) {
  return FactsOfRegion(graph, plan, {}, cpu, *graph.Find(node));
}

TEST(RegionPlans, FactsSayWhatANodeKeepsOfItsRows) {
  const Graph graph = ChainOfConvs();
  Plan plan = FewRowsPlan(graph, SmallCaches(), 2);
  AddRegion(plan, {"a", "b"}, 2);
  const RegionFacts a = Facts(graph, plan, "a"), b = Facts(graph, plan, "b");
  EXPECT_EQ(a.region, 1);
  EXPECT_THAT(a.nodes, ElementsAre("a", "b"));
  EXPECT_EQ(a.band_rows, 2);
  EXPECT_GE(a.buffer_rows, 4);
  EXPECT_EQ(a.buffer_bytes, a.buffer_rows * 24 * 16 * 4);
  EXPECT_GE(a.region_bytes, a.buffer_bytes);
  EXPECT_FALSE(a.is_whole);
  EXPECT_EQ(a.result_rows, 96);
  EXPECT_GE(a.computed_rows, 96 + 2);
  EXPECT_TRUE(a.apart.empty());
  EXPECT_EQ(b.buffer_rows, 0);
  EXPECT_TRUE(b.is_whole);
}

TEST(RegionPlans, FactsSayWhyARegionEnds) {
  const Graph gated = GatedConvs(), chain = ChainOfConvs();
  const Plan layers = FewRowsPlan(gated, SmallCaches(), 1);
  Plan plan = layers;
  AddRegion(plan, {"a", "b"}, 2);
  EXPECT_THAT(Facts(gated, plan, "b").apart,
              ElementsAre("mean gives no images of several rows",
                          "gate needs what others make of the region's results"));
  EXPECT_THAT(Facts(gated, plan, "mean").apart, ElementsAre("mean gives no images of several rows"));
  EXPECT_THAT(Facts(gated, plan, "c").apart,
              ElementsAre("c could be in it: nothing that ran so took less, or nothing ran",
                          "c is an output of the network"));
  Plan cut = FewRowsPlan(chain, SmallCaches(), 1);
  AddRegion(cut, {"a", "b"}, 2);
  EXPECT_THAT(Facts(chain, cut, "b").apart,
              ElementsAre("c could be in it: nothing that ran so took less, or nothing ran"));
  Target tiny = SmallCaches(), large = SmallCaches();
  tiny.l2_bytes = 16 << 10;
  large.l2_bytes = 16 << 20;
  EXPECT_THAT(Facts(chain, cut, "b", tiny).apart,
              ElementsAre("without c its buffers are estimated to take 18 KiB, and 12 are for them"));
  EXPECT_THAT(Facts(chain, cut, "b", large).apart,
              ElementsAre("b reads and writes what stays in the caches anyway"));
  cut.corrections.LearnConv("c", *cut.nodes[2].record, 3e-3);
  cut.corrections.LearnConv("c", *cut.nodes[2].record, 4e-3, {.band_rows = 2});
  EXPECT_THAT(Facts(chain, cut, "b").apart,
              ElementsAre("c could be in it: in one it took 4.0000 ms, and 3.0000 in none"));
}

TEST(RegionPlans, WhyThereAreNone) {
  const Graph graph = ChainOfConvs();
  Plan plan = FewRowsPlan(graph, SmallCaches(), 1);
  Target large = SmallCaches();
  large.l2_bytes = 16 << 20;
  const auto why = [&](const Target& cpu) { return WhyNoRegions(graph, plan, {}, cpu); };
  EXPECT_EQ(why(large), "no layers that read each other could be in one");
  EXPECT_EQ(why(SmallCaches()), "none that ran took less, or none ran (--no-regions)");
  plan.corrections.LearnConv("c", *plan.nodes[2].record, 4e-3, {.band_rows = 2});
  EXPECT_EQ(why(SmallCaches()), "plans with some ran, and took no less");
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
