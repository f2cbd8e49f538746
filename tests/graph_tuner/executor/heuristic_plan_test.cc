#include "graph_tuner/executor/heuristic_plan.h"

#include <gtest/gtest.h>

#include <set>

#include "graph_tuner/executor/placement.h"
#include "graph_tuner/plan/plan.h"
#include "ops/networks/networks.h"
#include "ops/passes/passes.h"
#include "tests/graph_tuner/support/executor_testing.h"
#include "tests/graph_tuner/support/liveness.h"

namespace tilesmith {
namespace {

NetworkOptions Small(const BuiltInNetwork& network) {
  // inception_v3 takes no less, and unet computes most of its layers at full size.
  const int64_t size = network.name == "inception_v3" ? 96 : network.name == "unet" ? 32 : 64;
  return {.batch = 1, .height = size, .width = size, .seed = 1};
}

class HeuristicPlanOf : public testing::TestWithParam<std::string_view> {};

TEST_P(HeuristicPlanOf, ComputesTheReference) {
  const Target cpu = TestCpu();
  const auto network = std::find_if(BuiltInNetworks().begin(), BuiltInNetworks().end(),
                                    [](const BuiltInNetwork& other) { return other.name == GetParam(); });
  const Graph graph = BuildNetwork(network->name, Small(*network));
  const std::vector<Tensor> inputs = RandomInputs(graph, 1);
  const std::vector<Tensor> expected = RunReference(graph, Pointers(inputs));
  for (const Graph& variant : {graph, OptimizeGraph(graph)}) {
    Executor executor(variant, HeuristicPlan(variant, cpu, 2), OpenDevice(cpu, 2));
    ExpectOutputs(executor, variant, inputs, expected, 1e-4);
  }
}

TEST_P(HeuristicPlanOf, NeedsLittleMoreMemoryThanIsLive) {
  const Target cpu = TestCpu();
  const Graph graph = OptimizeGraph(BuildNetwork(GetParam()));
  const Plan plan = HeuristicPlan(graph, cpu, 1);
  const Program program = BuildProgram(graph, ResolveSchedules(graph, plan, cpu));
  const std::vector<BufferRequest> requests = ArenaRequests(program, PlaceBuffers(program));
  const int64_t bytes = PlanMemory(requests, 1).bytes;
  const int64_t bound = LivenessLowerBound(requests);
  EXPECT_LE(bytes, bound + bound / 10) << bound << " bytes are live at once";
  EXPECT_LE(PlanMemory(requests, 2).bytes, bytes + bytes / 2);
}

TEST_P(HeuristicPlanOf, CoversEveryNodeAndTransform) {
  const Target cpu = TestCpu();
  const Graph graph = OptimizeGraph(BuildNetwork(GetParam()));
  const Plan plan = HeuristicPlan(graph, cpu, 1);
  EXPECT_EQ(plan.graph_hash, GraphHash(graph));
  EXPECT_EQ(plan.solver, "heuristic");
  std::set<std::string> planned, transformed;
  for (const NodePlan& node : plan.nodes) planned.insert(node.node);
  for (const TransformPlan& transform : plan.transforms) transformed.insert(transform.tensor);
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    const bool is_source = node.op->Type() == "Input" || node.op->Type() == "Constant";
    EXPECT_EQ(planned.count(node.name), is_source ? 0u : 1u) << node.name;
  }
  const Program program = BuildProgram(graph, ResolveSchedules(graph, plan, cpu));
  for (const Step& step : program.steps) {
    if (step.kind == StepKind::kTransform) {
      EXPECT_EQ(transformed.count(graph.node(step.node).name), 1u);
    }
  }
}

TEST(HeuristicPlan, TakesFewerMultiplicationsWhereTheyAreWorthTheirWeights) {
  Target cpu;
  cpu.isa = Isa::kAvx2;
  cpu.cores = 2;
  cpu.l2_bytes = 512 << 10;
  const std::pair<const char*, const char*> expected[] = {
      {"ic128ih56oc128oh56kh3ph1+bias+relu", "winograd"}, {"ic256ih28oc256oh28kh3ph1+bias+relu", "winograd"},
      {"ic1024ih7oc1024oh7kh3ph1+bias+relu", "direct"},  // four times the weights for few pixels
      {"ic128ih56oc128oh56kh3ph2dh1", "direct"},          {"ic512ih28oc256oh28kh1", "direct"},
      {"g64ic64ih56oc64oh56kh3ph1", "depthwise"},         {"g32ic128ih56oc128oh56kh3ph1", "grouped"}};
  for (const auto& [text, name] : expected)
    EXPECT_EQ(DefaultRecord(ParseWorkload(text), cpu, 2).template_name, name) << text;
}

TEST(HeuristicPlan, ConcatsOfBuiltInNetworksMoveNothing) {
  const Target cpu = TestCpu();
  for (const char* name : {"densenet121", "squeezenet1_1", "inception_v3", "unet"}) {
    const Graph graph = OptimizeGraph(BuildNetwork(name));
    const Plan plan = HeuristicPlan(graph, cpu, 1);
    for (const Step& step : BuildProgram(graph, ResolveSchedules(graph, plan, cpu)).steps) {
      EXPECT_NE(step.kind, StepKind::kCopy) << name << ": " << graph.node(step.node).name;
      const bool is_concat = graph.node(step.node).op->Type() == "Concat";
      EXPECT_FALSE(step.kind == StepKind::kNode && is_concat) << name << ": " << graph.node(step.node).name;
    }
  }
}

TEST(PlanOfOtherSize, ComputesTheReferenceWithTheNearestSchedules) {
  const Target cpu = TestCpu();
  for (const char* name : {"squeezenet1_1", "mobilenet_v2", "resnet18", "unet"}) {
    SCOPED_TRACE(name);
    const auto of_size = [&](int64_t height, int64_t width) {
      return OptimizeGraph(BuildNetwork(name, {.height = height, .width = width}));
    };
    for (const int threads : {1, 2}) {
      std::vector<Plan> plans;
      for (const int64_t size : {64, 96}) plans.push_back(HeuristicPlan(of_size(size, size), cpu, threads));
      const Graph graph = of_size(64, 80);
      ASSERT_EQ(NearestPlan(plans, graph, cpu, 1), &plans[0]);
      const std::optional<Plan> plan = PlanOfOtherSize(plans[0], graph, cpu);
      ASSERT_TRUE(plan.has_value());
      EXPECT_EQ(plan->graph_hash, GraphHash(graph));
      EXPECT_EQ(KnownPrediction(*plan), 0);
      for (size_t i = 0; i < plan->nodes.size(); ++i) {
        const NodePlan &node = plan->nodes[i], &from = plans[0].nodes[i];
        if (!node.record) continue;
        EXPECT_EQ(node.record->template_name, from.record->template_name) << node.node;
      }
      const std::vector<Tensor> inputs = RandomInputs(graph, 1);
      Executor executor(graph, *plan, OpenDevice(cpu, threads));
      ExpectOutputs(executor, graph, inputs, RunReference(graph, Pointers(inputs)), 1e-4);
    }
  }
}

TEST(PlanOfOtherSize, IsNoneOfAnotherNetworkOrCpu) {
  const Target cpu = TestCpu();
  const Graph graph = OptimizeGraph(BuildNetwork("resnet18", {.height = 64, .width = 64}));
  const Graph other = OptimizeGraph(BuildNetwork("mobilenet_v2", {.height = 64, .width = 64}));
  std::vector<Plan> plans = {HeuristicPlan(other, cpu, 1)};
  EXPECT_EQ(NearestPlan(plans, graph, cpu, 1), nullptr);
  EXPECT_FALSE(PlanOfOtherSize(plans[0], graph, cpu).has_value());
  plans = {HeuristicPlan(graph, cpu, 1)};
  EXPECT_EQ(NearestPlan(plans, graph, cpu, 1), plans.data());
  plans[0].target.version = "another";
  EXPECT_EQ(NearestPlan(plans, graph, cpu, 1), nullptr);
  plans[0].target = cpu;
  plans[0].target.model = "another";
  EXPECT_EQ(NearestPlan(plans, graph, cpu, 1), nullptr);
}

std::vector<std::string_view> NetworkNames() {
  std::vector<std::string_view> names;
  for (const BuiltInNetwork& network : BuiltInNetworks()) names.push_back(network.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(BuiltIn, HeuristicPlanOf, testing::ValuesIn(NetworkNames()),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilesmith
