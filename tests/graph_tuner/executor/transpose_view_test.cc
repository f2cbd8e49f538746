// Transposes that only move the channels, as in models exported channels last: views, which cost nothing
// where the layout beside them is NHWC.
#include <gtest/gtest.h>

#include <cstring>

#include "graph_tuner/executor/executor.h"
#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/problem/graph_tune.h"
#include "ops/graph/reference_run.h"
#include "ops/movement/transpose.h"
#include "ops/passes/passes.h"
#include "tests/graph_tuner/support/synthetic.h"

namespace tilesmith {
namespace {

Graph::NodeId AddTranspose(Graph& graph, const std::string& name, Graph::NodeId x,
                           std::vector<int64_t> perm) {
  return graph.Add(name, std::make_shared<TransposeOp>(std::move(perm)), {x});
}

// [N, H, W, C] in and out, as a channels-last framework has it.
Graph ChannelsLast(int64_t images, int64_t size) {
  Graph graph("channels_last");
  const auto input = AddInput(graph, {images, size, 5, 3});
  const auto first = AddConv(graph, "a", AddTranspose(graph, "in", input, {0, 3, 1, 2}), 8, 3);
  const auto second = AddConv(graph, "b", AddRelu(graph, "relu", first), 6, 1);
  graph.MarkOutput(AddTranspose(graph, "out", second, {0, 2, 3, 1}));
  return graph;
}

// A detector's head: maps flattened channels last, one behind the other.
Graph Head() {
  Graph graph("head");
  const auto input = AddInput(graph, {2, 8, 4, 4});
  std::vector<Graph::NodeId> flat;
  for (const char* name : {"a", "b"}) {
    const auto conv = AddConv(graph, name, input, 12, 3);
    const auto last = AddTranspose(graph, std::string(name) + "t", conv, {0, 2, 3, 1});
    flat.push_back(
        graph.Add(std::string(name) + "v", std::make_shared<ViewOp>("Reshape", Shape{2, -1, 4}), {last}));
  }
  graph.MarkOutput(graph.Add("all", std::make_shared<ConcatOp>(1), flat));
  return graph;
}

Graph WithWeights(const Graph& graph) {
  TestRandom random(1);
  return RewriteGraph(graph,
                      [&](Graph::NodeId id, const std::vector<Graph::NodeId>& inputs,
                          Graph& result) -> std::optional<Graph::NodeId> {
                        const auto* conv = graph.As<ConvOp>(id);
                        if (conv == nullptr) return std::nullopt;
                        auto weights = std::make_shared<Tensor>(conv->workload().weights_shape());
                        for (int64_t i = 0; i < weights->size(); ++i)
                          weights->floats()[i] = static_cast<float>(random.Integer(-3, 3));
                        return result.Add(graph.node(id).name,
                                          std::make_shared<ConvOp>(conv->workload(), weights, nullptr),
                                          inputs);
                      });
}

std::vector<StepProfile> ExpectReference(const Graph& graph, const Plan& plan) {
  TestRandom random(2);
  Tensor input(graph.node(graph.GraphInputs()[0]).shape);
  for (int64_t i = 0; i < input.size(); ++i) input.floats()[i] = static_cast<float>(random.Integer(-4, 4));
  const Tensor* const inputs[] = {&input};
  const Tensor expected = RunReference(graph, inputs)[0];
  Tensor output(expected.shape());
  Tensor* const outputs[] = {&output};
  std::vector<StepProfile> steps =
      Executor(graph, plan, OpenDevice(SyntheticCpu(), 2)).Profile(inputs, outputs, 1);
  EXPECT_EQ(
      std::memcmp(output.floats(), expected.floats(), static_cast<size_t>(expected.size()) * sizeof(float)),
      0);
  return steps;
}

TEST(TransposeView, HeuristicPlansRunIt) {
  for (const int64_t images : {1, 3}) {
    // In a square of three channels the two shapes are the same, the tensors are not.
    for (const int64_t size : {4, 5}) {
      const Graph graph = WithWeights(ChannelsLast(images, size));
      ExpectReference(graph, HeuristicPlan(graph, SyntheticCpu(), 2));
      const Graph optimized = OptimizeGraph(graph);
      ExpectReference(optimized, HeuristicPlan(optimized, SyntheticCpu(), 2));
    }
  }
  const Graph head = WithWeights(Head());
  ExpectReference(head, HeuristicPlan(head, SyntheticCpu(), 2));
}

TEST(TransposeView, EqualShapesAreNoIdentity) {
  Graph graph("cube");
  const auto input = AddInput(graph, {1, 3, 3, 3});
  graph.MarkOutput(AddRelu(graph, "relu", AddTranspose(graph, "t", input, {0, 2, 3, 1})));
  const Graph optimized = OptimizeGraph(graph);
  EXPECT_TRUE(optimized.Find("t").has_value());
  ExpectReference(optimized, HeuristicPlan(optimized, SyntheticCpu(), 2));
}

// With records in NCHW8c and NHWC the tuner takes NHWC where that makes the transposes free, and the steps
// are the convs alone.
TEST(TransposeView, CostsNothingWhereConvsWorkInNhwc) {
  const Graph graph = OptimizeGraph(WithWeights(ChannelsLast(1, 4)));
  std::vector<Record> log;
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    const auto* conv = graph.As<ConvOp>(id);
    if (conv == nullptr) continue;
    for (const int64_t block : {0, 8}) log.push_back(SyntheticRecord(conv->workload(), block, block, 1e-6));
  }
  SyntheticCosts costs(1);
  GraphTuneOptions options;
  options.cpu = SyntheticCpu();
  options.threads = 2;
  const Plan plan = GraphTune(graph, log, costs, options).plan;
  EXPECT_TRUE(plan.transforms.empty());
  const std::vector<StepProfile> steps = ExpectReference(graph, plan);
  EXPECT_EQ(steps.size(), 2u);
  for (const StepProfile& step : steps) EXPECT_EQ(step.kind, "portable");
}

}  // namespace
}  // namespace tilesmith
