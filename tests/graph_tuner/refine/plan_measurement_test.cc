#include "graph_tuner/refine/plan_measurement.h"

#include <gtest/gtest.h>

#include <map>

#include "graph_tuner/problem/graph_tune.h"
#include "tests/graph_tuner/support/synthetic.h"

namespace tilesmith {
namespace {

std::vector<StepProfile> RunOnce(const Graph& graph, const Plan& plan) {
  std::vector<Tensor> tensors;
  std::vector<const Tensor*> inputs;
  std::vector<Tensor*> outputs;
  const auto add = [&](Graph::NodeId id, const Layout& layout) {
    tensors.emplace_back(graph.node(id).shape, EndLayout(graph.node(id), layout));
  };
  for (const Graph::NodeId id : graph.GraphInputs()) add(id, plan.ends.inputs);
  for (const Graph::NodeId id : graph.outputs()) add(id, plan.ends.outputs);
  const size_t count = graph.GraphInputs().size();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (i < count)
      inputs.push_back(&tensors[i]);
    else
      outputs.push_back(&tensors[i]);
  }
  return Executor(graph, plan, OpenDevice(SyntheticCpu(), 2)).Profile(inputs, outputs, 1);
}

// What the plan charges is what runs: an entry that costs something is a step, and a step is an entry.
TEST(MatchSteps, StepsAreTheEntriesOfThePlan) {
  int conversions = 0, copies = 0;
  for (uint64_t seed = 0; seed < 90; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = RandomNetwork(seed, 4 + static_cast<int>(seed % 8));
    SyntheticCosts costs(seed);
    const auto log = SyntheticLog(graph, {1, 8, 16, 0}, seed);
    GraphTuneOptions options = SyntheticOptions();
    if (seed % 3 == 0) options.ends = {Layout::Nhwc(), Layout::Blocked(8)};
    const Plan plan = GraphTune(graph, log, costs, options).plan;
    const std::vector<StepProfile> steps = RunOnce(graph, plan);
    const std::vector<MatchedStep> matched = MatchSteps(graph, plan, costs, {.steps = steps});
    ASSERT_EQ(matched.size(), steps.size());
    double charged = 0;
    int nodes = 0, planned_conversions = 0;
    for (const MatchedStep& match : matched) {
      SCOPED_TRACE(match.step.name);
      EXPECT_EQ(match.node == nullptr, match.step.conversion.has_value());
      EXPECT_DOUBLE_EQ(match.stand_alone_seconds, match.step.predicted_seconds);
      EXPECT_DOUBLE_EQ(match.predicted_seconds, match.step.predicted_seconds);
      charged += match.stand_alone_seconds;
      nodes += match.node != nullptr;
      EXPECT_TRUE(match.step.planned);
      planned_conversions += match.node == nullptr;
      copies += match.step.kind == "copy";
    }
    EXPECT_NEAR(charged, plan.predicted_seconds, 1e-9 * plan.predicted_seconds);
    Plan dearer = plan;  // priced anew after it ran
    for (NodePlan& node : dearer.nodes) node.predicted_seconds *= 3;
    for (TransformPlan& transform : dearer.transforms) transform.predicted_seconds *= 3;
    double predicted = 0;
    for (const MatchedStep& match : MatchSteps(graph, dearer, costs, {.steps = steps}))
      predicted += match.predicted_seconds;
    EXPECT_NEAR(predicted, 3 * charged, 1e-9 * charged);
    EXPECT_EQ(static_cast<size_t>(planned_conversions), plan.transforms.size());
    conversions += planned_conversions;
    int costly = 0;
    for (const NodePlan& node : plan.nodes) costly += node.predicted_seconds > 0;
    EXPECT_EQ(nodes, costly);
  }
  EXPECT_GT(conversions, 100);
  EXPECT_GT(copies, 20);
}

TEST(PlanMeasurement, RatiosAreTakenTurnByTurn) {
  PlanMeasurement a, b;
  a.turns = {1, 1.5, 4, 1, 2};
  b.turns = {1.2, 1.8, 4.8, 50, 2.4};  // one was disturbed
  const std::vector<double> ratios = RatiosTo(a, b), expected = {1.2, 1.2, 1.2, 50, 1.2};
  ASSERT_EQ(ratios.size(), expected.size());
  for (size_t turn = 0; turn < ratios.size(); ++turn) EXPECT_NEAR(ratios[turn], expected[turn], 1e-12);
}

TEST(Learn, TakesEachStepsShareOfAnUnprofiledRun) {
  Graph graph("net");
  const Graph::NodeId a = AddConv(graph, "a", AddInput(graph, {1, 8, 4, 4}), 8);
  graph.MarkOutput(AddRelu(graph, "r", a));
  SyntheticCosts costs(1);
  const Plan plan = GraphTune(graph, SyntheticLog(graph, {8}, 1), costs, SyntheticOptions()).plan;
  PlanMeasurement measurement{4, RunOnce(graph, plan)};
  ASSERT_GE(measurement.steps.size(), 3u);
  for (StepProfile& step : measurement.steps)
    step.seconds = 1.0 / static_cast<double>(measurement.steps.size());
  EXPECT_DOUBLE_EQ(ProfiledSeconds(measurement), 1);
  EXPECT_DOUBLE_EQ(ShareScale(measurement), 4);
  EXPECT_EQ(ShareScale({}), 1);
  const double share = 4.0 / static_cast<double>(measurement.steps.size());
  Corrections corrections;
  Learn(MatchSteps(graph, plan, costs, measurement), ShareScale(measurement), corrections);
  EXPECT_DOUBLE_EQ(corrections.ConvSeconds("a", *plan.nodes[0].record), share);
  EXPECT_DOUBLE_EQ(corrections.OpSeconds("r", plan.nodes[1].layouts.in, 1), share);
  const Node& input = graph.node(0);
  EXPECT_DOUBLE_EQ(corrections.ConversionSeconds(input, Layout::Nchw(), Layout::Blocked(8), 1), share);
}

TEST(Learn, RepeatedConversionsCountWithTheirMean) {
  const StepProfile once{.name = "",
                         .kind = "copy",
                         .layouts = "",
                         .seconds = 1,
                         .node = "a",
                         .conversion = LayoutPair{Layout::Blocked(8), Layout::Blocked(8)}};
  StepProfile again = once;
  again.seconds = 4;
  Corrections corrections;
  Learn({{.step = once, .stand_alone_seconds = 2}, {.step = again, .stand_alone_seconds = 2}}, 2,
        corrections);
  const Node a{"a", nullptr, {1, 8, 4, 4}};
  EXPECT_DOUBLE_EQ(corrections.ConversionSeconds(a, Layout::Nhwc(), Layout::Blocked(8), 2), 5);
}

}  // namespace
}  // namespace tilesmith
