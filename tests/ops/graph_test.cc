#include "ops/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layouts/base/error.h"
#include "ops/base/op.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/binary.h"
#include "ops/graph/reference_run.h"
#include "ops/movement/concat.h"

namespace tilesmith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

OpPtr Input(Shape shape) { return std::make_shared<InputOp>(std::move(shape)); }
OpPtr Relu() { return std::make_shared<ActivationOp>(Activation{ActivationKind::kRelu}); }
OpPtr Add() { return std::make_shared<BinaryOp>(BinaryKind::kAdd); }

TEST(Graph, KeepsSlotsAndInfersShapes) {
  Graph graph("net");
  const auto a = graph.Add("a", Input({1, 2, 3, 3}), {});
  const auto b = graph.Add("b", Input({1, 5, 3, 3}), {});
  const auto joined = graph.Add("joined", std::make_shared<ConcatOp>(1), {b, a, b});
  EXPECT_EQ(graph.node(joined).shape, (Shape{1, 12, 3, 3}));
  EXPECT_THAT(graph.Inputs(joined), ElementsAre(b, a, b));
  EXPECT_THAT(graph.Consumers(b), ElementsAre(joined));
  EXPECT_THAT(graph.InputShapes(joined),
              ElementsAre(Shape{1, 5, 3, 3}, Shape{1, 2, 3, 3}, Shape{1, 5, 3, 3}));
  EXPECT_THAT(graph.GraphInputs(), ElementsAre(a, b));
  EXPECT_EQ(graph.Find("joined"), joined);
  EXPECT_EQ(graph.Find("nothing"), std::nullopt);
}

TEST(Graph, MakesNamesUnique) {
  Graph graph;
  const auto x = graph.Add("x", Input({1, 1, 1, 1}), {});
  const auto second = graph.Add("x", Relu(), {x});
  const auto unnamed = graph.Add("", Relu(), {x});
  EXPECT_EQ(graph.node(second).name, "x_1");
  EXPECT_FALSE(graph.node(unnamed).name.empty());
  EXPECT_EQ(graph.Find("x"), x);
  EXPECT_EQ(graph.Find("x_1"), second);
}

TEST(Graph, NamesTheNodeWhoseShapesDoNotFit) {
  Graph graph;
  const auto a = graph.Add("a", Input({1, 2, 3, 3}), {});
  const auto b = graph.Add("b", Input({1, 2, 4, 4}), {});
  try {
    graph.Add("total", Add(), {a, b});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadModel);
    EXPECT_THAT(error.what(), HasSubstr("total"));
  }
}

TEST(Graph, RewriteDropsDeadNodesAndKeepsInputs) {
  Graph graph;
  const auto a = graph.Add("a", Input({1, 2, 3, 3}), {});
  graph.Add("unused", Input({1, 1, 1, 1}), {});
  graph.Add("dead", Relu(), {a});
  const auto live = graph.Add("live", Relu(), {a});
  const auto last = graph.Add("last", Relu(), {live});
  graph.MarkOutput(last);
  graph.MarkOutput(live);
  const Graph copy = RewriteGraph(graph, [](auto, const auto&, Graph&) { return std::nullopt; });
  ASSERT_EQ(copy.size(), 4u);
  EXPECT_EQ(copy.GraphInputs().size(), 2u);
  EXPECT_FALSE(copy.Find("dead"));
  EXPECT_THAT(copy.outputs(), ElementsAre(*copy.Find("last"), *copy.Find("live")));
}

TEST(Graph, HashFollowsStructureNotNames) {
  const auto build = [](const std::string& name, Shape shape, bool crossed) {
    Graph graph;
    const auto a = graph.Add(name, Input(shape), {});
    const auto b = graph.Add("", Input(shape), {});
    const auto joined =
        graph.Add("", std::make_shared<ConcatOp>(1), crossed ? std::vector{b, a} : std::vector{a, b});
    graph.MarkOutput(joined);
    return GraphHash(graph);
  };
  const std::string hash = build("a", {1, 2, 3, 3}, false);
  EXPECT_EQ(hash.size(), 16u);
  EXPECT_EQ(hash, build("b", {1, 2, 3, 3}, false));
  EXPECT_NE(hash, build("a", {1, 2, 3, 4}, false));
  EXPECT_NE(hash, build("a", {1, 2, 3, 3}, true));
}

TEST(RunReference, EvaluatesEveryOutputInOrder) {
  Graph graph;
  const auto a = graph.Add("a", Input({1, 1, 1, 2}), {});
  const auto relu = graph.Add("relu", Relu(), {a});
  const auto sum = graph.Add("sum", Add(), {relu, a});
  const auto twice = graph.Add("twice", Add(), {sum, sum});
  graph.MarkOutput(twice);
  graph.MarkOutput(a);
  graph.MarkOutput(relu);
  Tensor input({1, 1, 1, 2});
  input.floats()[0] = -3, input.floats()[1] = 5;
  const Tensor* inputs[] = {&input};
  const std::vector<Tensor> outputs = RunReference(graph, inputs);
  ASSERT_EQ(outputs.size(), 3u);
  const auto values = [&](int i) {
    return std::vector<float>{outputs[i].floats()[0], outputs[i].floats()[1]};
  };
  EXPECT_THAT(values(0), ElementsAre(-6, 20));
  EXPECT_THAT(values(1), ElementsAre(-3, 5));
  EXPECT_THAT(values(2), ElementsAre(0, 5));
}

TEST(RunReference, RefusesInputsThatDoNotFit) {
  Graph graph;
  graph.MarkOutput(graph.Add("photo", Input({1, 3, 2, 2}), {}));
  const Tensor wrong({1, 3, 2, 4});
  const Tensor* inputs[] = {&wrong};
  try {
    RunReference(graph, inputs);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("photo"), HasSubstr("1x3x2x2"), HasSubstr("1x3x2x4")));
  }
  EXPECT_THROW(RunReference(graph, {}), Error);
}

TEST(RunReference, StopsWhenToldTo) {
  Graph graph;
  const auto a = graph.Add("a", Input({1, 1, 1, 2}), {});
  graph.MarkOutput(graph.Add("relu", Relu(), {a}));
  const Tensor input({1, 1, 1, 2});
  const Tensor* inputs[] = {&input};
  StopFlag stop = false;
  EXPECT_EQ(RunReference(graph, inputs, &stop).size(), 1u);
  stop = true;
  try {
    RunReference(graph, inputs, &stop);
    FAIL() << "went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInterrupted);
  }
}

}  // namespace
}  // namespace tilesmith
