#include "graph_tuner/executor/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "graph_tuner/executor/compiled_network.h"
#include "graph_tuner/executor/placement.h"
#include "layouts/base/error.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/binary.h"
#include "ops/movement/concat.h"
#include "ops/movement/view.h"
#include "tests/graph_tuner/support/executor_testing.h"
#include "tests/graph_tuner/support/region_plans.h"

namespace tilesmith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using NodeId = Graph::NodeId;

constexpr double kTolerance = 1e-5;

OpPtr Input(Shape shape) { return std::make_shared<InputOp>(std::move(shape)); }
OpPtr Relu() { return std::make_shared<ActivationOp>(Activation{ActivationKind::kRelu}); }
OpPtr Add() { return std::make_shared<BinaryOp>(BinaryKind::kAdd); }
OpPtr Concat() { return std::make_shared<ConcatOp>(1); }

// Checks the answers of one plan and returns the steps it took.
std::vector<std::string> StepsOf(const Graph& graph, const Plan& plan, int threads = 2) {
  const Target cpu = TestCpu();
  Executor executor(graph, plan, OpenDevice(cpu, threads));
  const std::vector<Tensor> inputs = RandomInputs(graph, 7);
  ExpectOutputs(executor, graph, inputs, RunReference(graph, Pointers(inputs)), kTolerance);
  std::vector<Tensor> outputs = UnwrittenOutputs(graph);
  std::vector<std::string> names;
  for (const StepProfile& step : executor.Profile(Pointers(inputs), Pointers(outputs), 1)) {
    names.push_back(step.name);
  }
  return names;
}

std::string ErrorOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Executor, OneTransformServesAllConsumers) {
  Graph graph("g");
  const NodeId x = graph.Add("x", Input({1, 16, 5, 5}), {});
  const NodeId a = AddFilledConv(graph, "a", {x}, 16);
  const NodeId b = AddFilledConv(graph, "b", {x}, 16, 3);
  graph.MarkOutput(graph.Add("sum", Add(), {a, b}));
  EXPECT_THAT(StepsOf(graph, UniformPlan(graph, TestCpu(), 8)),
              ElementsAre("x: NCHW -> NCHW8c", "a", "b", "sum", "sum: NCHW8c -> NCHW"));
}

TEST(Executor, ConcatOfWholeBlocksTakesNoStep) {
  Graph graph("g");
  const NodeId x = graph.Add("x", Input({2, 8, 3, 3}), {});
  const NodeId a = AddFilledConv(graph, "a", {x}, 16);
  const NodeId b = AddFilledConv(graph, "b", {a}, 11);  // its last block is partly filled, as the concat's is
  const NodeId inner = graph.Add("inner", Concat(), {a, b});
  const NodeId c = AddFilledConv(graph, "c", {inner}, 16);
  graph.MarkOutput(graph.Add("outer", Concat(), {c, inner}));
  EXPECT_THAT(StepsOf(graph, UniformPlan(graph, TestCpu(), 8)),
              ElementsAre("x: NCHW -> NCHW8c", "a", "b", "c", "outer: NCHW8c -> NCHW"));
}

TEST(Executor, ConcatAcrossBlocksIsComputed) {
  Graph graph("g");
  const NodeId x = graph.Add("x", Input({2, 8, 3, 3}), {});
  const NodeId a = AddFilledConv(graph, "a", {x}, 11);
  const NodeId b = AddFilledConv(graph, "b", {x}, 8);
  graph.MarkOutput(graph.Add("cat", Concat(), {a, b}));
  EXPECT_THAT(StepsOf(graph, UniformPlan(graph, TestCpu(), 8)),
              ElementsAre("x: NCHW -> NCHW8c", "a", "b", "cat", "cat: NCHW8c -> NCHW"));
}

TEST(Executor, TensorsConcatenatedTwiceAreCopiedOnce) {
  Graph graph("g");
  const NodeId x = graph.Add("x", Input({1, 8, 3, 3}), {});
  const NodeId a = AddFilledConv(graph, "a", {x}, 8);
  const NodeId b = AddFilledConv(graph, "b", {x}, 8);
  graph.MarkOutput(graph.Add("ab", Concat(), {a, b}));
  graph.MarkOutput(graph.Add("xb", Concat(), {x, b}));
  EXPECT_THAT(StepsOf(graph, UniformPlan(graph, TestCpu(), 8)),
              ElementsAre("x: NCHW -> NCHW8c", "a", "b", "x: NCHW8c -> NCHW8c", "b: NCHW8c -> NCHW8c",
                          "ab: NCHW8c -> NCHW", "xb: NCHW8c -> NCHW"));
}

TEST(Executor, OutputsThatAreInputsOrViewsAreCopied) {
  Graph graph("g");
  const NodeId x = graph.Add("x", Input({2, 3, 2, 2}), {});
  const NodeId y = graph.Add("y", Relu(), {x});
  const NodeId flat = graph.Add("flat", std::make_shared<ViewOp>("Reshape", Shape{6, 4}), {y});
  for (const NodeId id : {flat, x, y}) graph.MarkOutput(id);
  EXPECT_THAT(StepsOf(graph, UniformPlan(graph, TestCpu(), 1)),
              ElementsAre("y", "x: NCHW -> NCHW", "y: NCHW -> NCHW"));
}

// The root buffers of the values the nodes write, by name.
std::vector<int> RootsOf(const Graph& graph, const Plan& plan, const std::vector<std::string>& names) {
  const Program program = BuildProgram(graph, ResolveSchedules(graph, plan, TestCpu()));
  const std::vector<Place> places = PlaceBuffers(program);
  std::vector<int> roots;
  for (const std::string& name : names) {
    for (const Step& step : program.steps) {
      if (step.kind != StepKind::kNode || graph.node(step.node).name != name) continue;
      roots.push_back(places[program.values[step.write].buffer].root);
    }
  }
  return roots;
}

TEST(Executor, ResidualsAndActivationsWorkInPlace) {
  Graph graph("g");
  const NodeId x = graph.Add("x", Input({1, 8, 4, 4}), {});
  const NodeId a = AddFilledConv(graph, "a", {x}, 8);
  const NodeId b = AddFilledConv(graph, "b", {a}, 8);
  const NodeId c = AddFilledConv(graph, "c", {b, a}, 8);  // over a, which dies here
  const NodeId d = graph.Add("d", Relu(), {c});           // over c
  const NodeId e = AddFilledConv(graph, "e", {d, d}, 8);  // not over d, which it convolves
  graph.MarkOutput(e);
  const Plan plan = UniformPlan(graph, TestCpu(), 8);
  const std::vector<int> roots = RootsOf(graph, plan, {"a", "b", "c", "d", "e"});
  ASSERT_EQ(roots.size(), 5u);
  EXPECT_EQ(roots[2], roots[0]);
  EXPECT_EQ(roots[3], roots[2]);
  EXPECT_NE(roots[1], roots[0]);
  EXPECT_NE(roots[4], roots[3]);
  StepsOf(graph, plan);
}

TEST(Executor, NothingIsWrittenOverWhatIsStillRead) {
  Graph graph("g");
  const NodeId x = graph.Add("x", Input({1, 8, 4, 4}), {});
  const NodeId a = AddFilledConv(graph, "a", {x}, 8);
  const NodeId b = AddFilledConv(graph, "b", {a}, 8);
  const NodeId cat = graph.Add("cat", Concat(), {a, b});
  const NodeId relu = graph.Add("relu", Relu(), {cat});  // over the concat were it not for c
  const NodeId c = AddFilledConv(graph, "c", {a}, 16);
  graph.MarkOutput(graph.Add("sum", Add(), {relu, c}));
  const Plan plan = UniformPlan(graph, TestCpu(), 8);
  const std::vector<int> roots = RootsOf(graph, plan, {"a", "b", "relu"});
  EXPECT_EQ(roots[0], roots[1]);
  EXPECT_NE(roots[2], roots[0]);
  StepsOf(graph, plan);
}

TEST(Executor, TensorsWhoseBatchIsRecutStayDense) {
  Graph graph("g");
  const NodeId x = graph.Add("x", Input({2, 3, 4, 4}), {});
  const NodeId a = AddFilledConv(graph, "a", {x}, 4);
  const NodeId flat = graph.Add("flat", std::make_shared<ViewOp>("Reshape", Shape{1, -1}), {a});
  graph.MarkOutput(graph.Add("recut", Relu(), {flat}));
  const NodeId b = graph.Add("b", Relu(), {a});  // lies in the concat, where images are apart: not over a
  const NodeId cat = graph.Add("cat", Concat(), {b, x});
  graph.MarkOutput(graph.Add("z", Relu(), {cat}));
  const Plan plan = UniformPlan(graph, TestCpu(), 1);
  const std::vector<int> roots = RootsOf(graph, plan, {"a", "b"});
  EXPECT_NE(roots[0], roots[1]);
  StepsOf(graph, plan);
}

TEST(Executor, OneImageSeenAsSeveralStaysDense) {
  Graph graph("g");
  const NodeId x = graph.Add("x", Input({1, 3, 4, 4}), {});
  const NodeId y = graph.Add("y", Input({2, 3, 4, 4}), {});
  const auto view = [&](const std::string& name, NodeId of) {
    return graph.Add(name, std::make_shared<ViewOp>("Reshape", Shape{2, 2, 4, 4}), {of});
  };
  const NodeId a = AddFilledConv(graph, "a", {x}, 4);
  const NodeId b = graph.Add("b", Relu(), {view("a2", a)});  // in the concat, images apart: not over a
  graph.MarkOutput(graph.Add("computed", Relu(), {graph.Add("by", Concat(), {b, y})}));
  const NodeId c = view("c2", AddFilledConv(graph, "c", {x}, 4));
  graph.MarkOutput(graph.Add("seen", Relu(), {graph.Add("cy", Concat(), {c, y})}));
  const Plan plan = UniformPlan(graph, TestCpu(), 1);
  const std::vector<int> roots = RootsOf(graph, plan, {"a", "b"});
  EXPECT_NE(roots[0], roots[1]);
  StepsOf(graph, plan);
}

class ThrowingOp : public Op {
 public:
  explicit ThrowingOp(std::shared_ptr<bool> armed) : armed_(std::move(armed)) {}
  std::string_view Type() const override { return "Throwing"; }
  std::string Signature() const override { return "Throwing"; }
  Shape InferShape(std::span<const Shape> inputs) const override { return inputs[0]; }
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  Tensor Reference(std::span<const Tensor* const> inputs) const override {
    if (*armed_) throw std::runtime_error("as arranged");
    return *inputs[0];
  }

 private:
  std::shared_ptr<bool> armed_;
};

TEST(Executor, ExceptionsOfKernelsReachTheCaller) {
  const auto armed = std::make_shared<bool>(false);
  Graph graph("g");
  const NodeId x = graph.Add("x", Input({1, 8, 4, 4}), {});
  const NodeId y = graph.Add("y", std::make_shared<ThrowingOp>(armed), {x});
  graph.MarkOutput(AddFilledConv(graph, "z", {y}, 8));
  const Target cpu = TestCpu();
  Executor executor(graph, UniformPlan(graph, cpu, 8), OpenDevice(cpu, 3));
  const std::vector<Tensor> inputs = RandomInputs(graph, 1);
  const std::vector<Tensor> expected = RunReference(graph, Pointers(inputs));
  std::vector<Tensor> outputs = UnwrittenOutputs(graph);
  *armed = true;
  const auto output_pointers = Pointers(outputs);
  EXPECT_THROW(executor.Run(Pointers(inputs), output_pointers), std::runtime_error);
  *armed = false;
  ExpectOutputs(executor, graph, inputs, expected, kTolerance);
  EXPECT_EQ(executor.Profile(Pointers(inputs), output_pointers, 1)[0].kind, "Throwing (reference)");
}

// Passes on what it reads, and calls a function when it does.
class CallingOp : public Op {
 public:
  explicit CallingOp(std::function<void()> call) : call_(std::move(call)) {}
  std::string_view Type() const override { return "Calling"; }
  std::string Signature() const override { return "Calling"; }
  Shape InferShape(std::span<const Shape> inputs) const override { return inputs[0]; }
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  Tensor Reference(std::span<const Tensor* const> inputs) const override {
    call_();
    return *inputs[0];
  }

 private:
  std::function<void()> call_;
};

ErrorCode CodeOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode{};
}

TEST(Executor, StopsAtTheNextStepWhenToldTo) {
  StopFlag stop = false;
  bool tell = false;
  int later = 0;
  Graph graph("g");
  const NodeId x = graph.Add("x", Input({1, 8, 4, 4}), {});
  const NodeId y = graph.Add("y", std::make_shared<CallingOp>([&] { stop = tell; }), {x});
  const NodeId z = AddFilledConv(graph, "z", {y}, 8);
  graph.MarkOutput(graph.Add("w", std::make_shared<CallingOp>([&] { ++later; }), {z}));
  const Target cpu = TestCpu();
  const Plan plan = UniformPlan(graph, cpu, 8);
  Executor executor(graph, plan, OpenDevice(cpu, 3), &stop);
  const std::vector<Tensor> inputs = RandomInputs(graph, 1);
  const std::vector<Tensor> expected = RunReference(graph, Pointers(inputs));
  std::vector<Tensor> outputs = UnwrittenOutputs(graph);
  const auto output_pointers = Pointers(outputs);
  tell = true;
  later = 0;
  EXPECT_EQ(CodeOf([&] { executor.Run(Pointers(inputs), output_pointers); }), ErrorCode::kInterrupted);
  EXPECT_EQ(CodeOf([&] { executor.Profile(Pointers(inputs), output_pointers, 2); }), ErrorCode::kInterrupted);
  EXPECT_EQ(later, 0);
  EXPECT_EQ(CodeOf([&] { Executor(graph, plan, OpenDevice(cpu, 1), &stop); }), ErrorCode::kInterrupted);
  stop = tell = false;
  ExpectOutputs(executor, graph, inputs, expected, kTolerance);
  EXPECT_GT(later, 0);
}

class ExecutorErrors : public testing::Test {
 protected:
  ExecutorErrors() : graph_("g"), cpu_(TestCpu()) {
    const NodeId x = graph_.Add("x", Input({1, 8, 4, 4}), {});
    const NodeId y = AddFilledConv(graph_, "y", {x}, 8);
    graph_.MarkOutput(graph_.Add("z", Relu(), {y}));
    plan_ = UniformPlan(graph_, cpu_, 8);
  }
  NodePlan& Planned(const std::string& name) {
    return *std::find_if(plan_.nodes.begin(), plan_.nodes.end(),
                         [&](const NodePlan& node) { return node.node == name; });
  }
  std::string BuildError() {
    return ErrorOf([&] { Executor(graph_, plan_, OpenDevice(cpu_, 1)); });
  }

  Graph graph_;
  Target cpu_;
  Plan plan_;
};

TEST_F(ExecutorErrors, PlansThatDoNotFitAreRefusedByName) {
  EXPECT_EQ(BuildError(), "no error");
  const Plan good = plan_;
  Planned("y").record->config.Set("ic_block", 5);
  EXPECT_THAT(BuildError(), HasSubstr("node \"y\": template portable, config"));
  plan_ = good;
  Planned("y").layouts.in = Layout::Nchw();
  EXPECT_THAT(BuildError(), HasSubstr("layouts NCHW -> NCHW8c, but its config computes NCHW8c -> NCHW8c"));
  plan_ = good;
  Planned("y").record->template_name = "origami";
  EXPECT_THAT(BuildError(), HasSubstr("unknown template \"origami\""));
  plan_ = good;
  Planned("z").layouts.out = Layout::Nchw();
  EXPECT_THAT(BuildError(), HasSubstr("node \"z\": Relu cannot change layouts"));
  plan_ = good;
  Planned("z").node = "w";
  EXPECT_THAT(BuildError(), HasSubstr("node \"z\": missing"));
}

TEST_F(ExecutorErrors, TensorsThatDoNotFitAreRefusedByName) {
  Executor executor(graph_, plan_, OpenDevice(cpu_, 1));
  Tensor input({1, 8, 4, 4}), wide({1, 8, 4, 5}), blocked({1, 8, 4, 4}, Layout::Blocked(8));
  Tensor output({1, 8, 4, 4});
  const auto run_error = [&](std::vector<const Tensor*> inputs, std::vector<Tensor*> outputs) {
    return ErrorOf([&] { executor.Run(inputs, outputs); });
  };
  EXPECT_EQ(run_error({&input}, {&output}), "no error");
  EXPECT_THAT(run_error({&wide}, {&output}), HasSubstr("input \"x\" is 1x8x4x5 NCHW, expected 1x8x4x4"));
  EXPECT_THAT(run_error({&blocked}, {&output}), HasSubstr("input \"x\" is 1x8x4x4 NCHW8c, expected"));
  EXPECT_THAT(run_error({&input}, {&wide}), HasSubstr("output \"z\" is 1x8x4x5"));
  EXPECT_THAT(run_error({&input}, {&input}), HasSubstr("the same tensor"));
  EXPECT_THAT(run_error({}, {&output}), HasSubstr("0 inputs and 1 outputs given, expected 1 and 1"));
}

TEST_F(ExecutorErrors, ProfilesCarryPredictionsAndKinds) {
  Planned("y").predicted_seconds = 0.25;
  plan_.transforms = {{"z", Layout::Blocked(8), Layout::Nchw(), 0.5}};
  Executor executor(graph_, plan_, OpenDevice(cpu_, 2));
  Tensor input({1, 8, 4, 4}), output({1, 8, 4, 4});
  const Tensor* const inputs[] = {&input};
  Tensor* const outputs[] = {&output};
  const std::vector<StepProfile> profile = executor.Profile(inputs, outputs, 5);
  ASSERT_EQ(profile.size(), 4u);
  EXPECT_EQ(profile[0].kind, "transform");
  EXPECT_EQ(profile[0].predicted_seconds, 0);
  EXPECT_EQ(profile[1].kind, "portable");
  EXPECT_EQ(profile[1].layouts, "NCHW8c -> NCHW8c");
  EXPECT_EQ(profile[1].predicted_seconds, 0.25);
  EXPECT_EQ(profile[2].kind, "Relu");
  EXPECT_EQ(profile[3].predicted_seconds, 0.5);
  for (const StepProfile& step : profile) EXPECT_GT(step.seconds, 0);
  EXPECT_GT(executor.PackedWeightBytes(), 0u);
  EXPECT_GT(executor.ArenaBytes(), 0u);
}

TEST(Executor, ProfilesSayWhatARegionComputesAndSaves) {
  constexpr int64_t kHeight = 96;
  Graph graph("chain");
  const auto x = graph.Add("x", Input({1, 8, kHeight, 64}), {});
  const auto a = AddFilledConv(graph, "a", {x}, 32, 3);
  const auto b = AddFilledConv(graph, "b", {a}, 32, 3);
  graph.MarkOutput(AddFilledConv(graph, "c", {b}, 16, 3));
  const Target cpu = TestCpu();
  Plan plan = FewRowsPlan(graph, cpu, 2);
  AddRegion(plan, {"a", "b", "c"}, 4);
  Executor executor(graph, plan, OpenDevice(cpu, 2));
  const std::vector<Tensor> inputs = RandomInputs(graph, 7);
  std::vector<Tensor> outputs = UnwrittenOutputs(graph);
  int64_t computed = 0, steps = 0;
  for (const StepProfile& step : executor.Profile(Pointers(inputs), Pointers(outputs), 3)) {
    EXPECT_EQ(step.region.number, 1) << step.name;  // the input's and the output's transform, too
    EXPECT_EQ(step.region.result_rows, kHeight) << step.name;
    // The rows around the middle, two steps away from the end and one.
    const int64_t halo = step.node == "a" ? 4 : step.node == "b" ? 2 : 0;
    EXPECT_GE(step.region.computed_rows, step.region.result_rows + halo) << step.name;
    EXPECT_GT(step.seconds, 0) << step.name;
    computed += step.region.computed_rows;
    ++steps;
  }
  EXPECT_EQ(steps, 5);
  const std::vector<RegionProfile> regions = RegionProfiles(executor.network());
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].number, 1);
  EXPECT_EQ(regions[0].steps, steps);
  EXPECT_EQ(regions[0].band_rows, 4);
  EXPECT_EQ(regions[0].bands, kHeight / 4);
  EXPECT_EQ(regions[0].computed_rows, computed);
  EXPECT_EQ(regions[0].result_rows, steps * kHeight);
  EXPECT_GT(regions[0].buffer_bytes, 0);

  const auto whole = CompileNetwork(graph, WithoutRegions(plan), OpenDevice(cpu, 2));
  EXPECT_EQ(executor.network().layer_by_layer_bytes, whole->memory.bytes);
  EXPECT_EQ(whole->layer_by_layer_bytes, whole->memory.bytes);
  EXPECT_LT(executor.network().memory.bytes, whole->memory.bytes);
}

TEST_F(ExecutorErrors, NetworksOfAPoolShareEqualWeights) {
  const DevicePtr device = OpenDevice(cpu_, 1);
  BufferPool pool;
  const auto compile = [&](BufferPool* shared) {
    return CompileNetwork(graph_, plan_, device, nullptr, shared);
  };
  const auto one = compile(&pool), other = compile(&pool), alone = compile(nullptr);
  const size_t bytes = PackedWeightBytes(*one);
  const auto weights_of = [](const CompiledNetwork& network) {
    const auto conv = std::ranges::find_if(
        network.recipes, [](const KernelRecipe& recipe) { return !recipe.conv_template.empty(); });
    return PackedWeightsOf(*network.kernels.at(conv - network.recipes.begin())).data();
  };
  EXPECT_EQ(weights_of(*one), weights_of(*other));
  EXPECT_EQ(PackedWeightBytes(std::array{one.get(), other.get()}), bytes);
  EXPECT_EQ(PackedWeightBytes(std::array{one.get(), alone.get()}), 2 * bytes);
}

}  // namespace
}  // namespace tilesmith
