// Networks with tensors of other types than f32: as inputs, outputs, constants and in between.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "graph_tuner/check/network_check.h"
#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/plan/plan_file.h"
#include "graph_tuner/problem/graph_tune.h"
#include "layouts/base/error.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/logic.h"
#include "ops/movement/concat.h"
#include "ops/movement/indexing.h"
#include "ops/movement/shape_arithmetic.h"
#include "ops/movement/transpose.h"
#include "ops/movement/view.h"
#include "tests/graph_tuner/support/executor_testing.h"
#include "tests/graph_tuner/support/synthetic.h"
#include "tests/support/temporary_files.h"

namespace tilesmith {
namespace {

using testing::HasSubstr;
using NodeId = Graph::NodeId;

std::string RefusalOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Tensor RandomOf(const Shape& shape, DataType type, uint64_t seed) {
  Tensor tensor(shape, Layout::Nchw(type));
  TestRandom random(seed);
  VisitType(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor.data<T>()[i] =
          ConvertElement<T>(random.Integer(type == DataType::kBool ? 0 : 1, 1 + random.Integer(0, 99)));
  });
  return tensor;
}

// A conv with whole weights, whose sums of whole numbers are exact however they are added up.
NodeId AddExactConv(Graph& graph, const std::string& name, NodeId input, int64_t oc) {
  const Shape in = graph.node(input).shape;
  ConvWorkload w;
  std::tie(w.mb, w.ic, w.ih, w.iw) = std::tie(in[0], in[1], in[2], in[3]);
  std::tie(w.oc, w.oh, w.ow) = std::tie(oc, in[2], in[3]);
  w.kh = w.kw = 3;
  w.ph = w.pw = 1;
  w.post = {.bias = true, .sum = false, .activation = {ActivationKind::kRelu}};
  auto weights = std::make_shared<Tensor>(w.weights_shape());
  auto bias = std::make_shared<Tensor>(Shape{oc});
  TestRandom random(graph.size() + 1);
  for (Tensor* tensor : {weights.get(), bias.get()})
    for (int64_t i = 0; i < tensor->size(); ++i)
      tensor->floats()[i] = static_cast<float>(random.Integer(-2, 2));
  return graph.Add(name, std::make_shared<ConvOp>(w, weights, bias), {input});
}

OpPtr Cast(DataType to) { return std::make_shared<CastOp>(to); }
OpPtr Constant(Tensor value) {
  return std::make_shared<ConstantOp>(std::make_shared<const Tensor>(std::move(value)));
}

// An image of bytes through two convs to integers, bools and a choice by them, and indices that are an input.
struct TypedNetwork {
  Graph graph{"typed"};
  std::vector<Tensor> inputs;

  explicit TypedNetwork(int64_t images = 2) {
    const Shape image = {images, 3, 6, 7};
    const NodeId bytes = graph.Add("bytes", std::make_shared<InputOp>(image, DataType::kU8), {});
    const NodeId indices = graph.Add("indices", std::make_shared<InputOp>(Shape{4}, DataType::kI32), {});
    const NodeId floats = graph.Add("floats", Cast(DataType::kF32), {bytes});
    const NodeId a = AddExactConv(graph, "a", floats, 20);
    const NodeId b = AddExactConv(graph, "b", a, 20);
    const NodeId whole = graph.Add("whole", Cast(DataType::kI64), {b});
    const NodeId halves = graph.Add("halves", Cast(DataType::kF16), {a});
    const NodeId limit = graph.Add("limit", Constant(RandomOf({1, 20, 1, 1}, DataType::kI64, 5)), {});
    const NodeId sum = graph.Add("sum", std::make_shared<BinaryOp>(BinaryKind::kAdd), {whole, limit});
    const NodeId same = graph.Add("same", std::make_shared<PairOp>(PairKind::kEqual), {a, b});
    const NodeId chosen = graph.Add("chosen", std::make_shared<WhereOp>(), {same, b, a});
    const NodeId joined = graph.Add("joined", std::make_shared<ConcatOp>(1), {whole, sum});
    const NodeId picked = graph.Add("picked", std::make_shared<GatherOp>(1), {joined, indices});
    const NodeId relu =
        graph.Add("relu", std::make_shared<ActivationOp>(Activation{ActivationKind::kRelu}), {chosen});
    const NodeId flat = graph.Add("flat", std::make_shared<ViewOp>("Reshape", Shape{0, -1}), {same});
    for (const NodeId output : {halves, picked, relu, flat, joined, bytes}) graph.MarkOutput(output);
    inputs.push_back(RandomOf(image, DataType::kU8, 3));
    inputs.emplace_back(Shape{4}, Layout::Nchw(DataType::kI32));
    const int32_t at[] = {-1, 0, 39, 20};
    std::copy(std::begin(at), std::end(at), inputs[1].data<int32_t>());
  }
};

std::vector<Plan> PlansFor(const Graph& graph) {
  const Target cpu = TestCpu();
  return {HeuristicPlan(graph, cpu, 2), UniformPlan(graph, cpu, 8), UniformPlan(graph, cpu, 16)};
}

TEST(TypedNetworks, AreComputedAsTheReferenceDoes) {
  const TypedNetwork network;
  const std::vector<Tensor> expected = RunReference(network.graph, Pointers(network.inputs));
  EXPECT_EQ(expected[0].type(), DataType::kF16);
  EXPECT_EQ(expected[1].type(), DataType::kI64);
  EXPECT_EQ(expected[3].type(), DataType::kBool);
  for (const Plan& plan : PlansFor(network.graph)) {
    for (const int threads : {1, 3}) {
      Executor executor(network.graph, plan, OpenDevice(TestCpu(), threads));
      ExpectOutputs(executor, network.graph, network.inputs, expected, 0);
    }
  }
}

TEST(TypedNetworks, PassTheNetworkCheck) {
  const TypedNetwork network;
  for (const Plan& plan : PlansFor(network.graph)) {
    Executor executor(network.graph, plan, OpenDevice(TestCpu(), 2));
    const NetworkCheck check = CheckNetwork(executor, network.graph, plan, TestCpu(), network.inputs);
    EXPECT_EQ(check.wrong, "");
    EXPECT_GT(check.steps, 8);
  }
}

TEST(TypedNetworks, ArePlannedAndPlansRoundTrip) {
  const TypedNetwork network;
  const TemporaryDirectory folder;
  GraphTuneOptions options = SyntheticOptions();
  options.allow_defaults = true;
  SyntheticCosts costs(1);
  Plan plan = GraphTune(network.graph, {}, costs, options).plan;
  WritePlan(folder.File("plan.jsonl"), plan);
  const Plan read = ReadPlan(folder.File("plan.jsonl"), nullptr);
  EXPECT_TRUE(SameSchedules(read, plan));
  const auto layouts = [&](std::string_view name) {
    return std::ranges::find(read.nodes, name, &NodePlan::node)->layouts;
  };
  EXPECT_EQ(layouts("floats"), (LayoutPair{Layout::Nchw(DataType::kU8), Layout::Nchw()}));
  EXPECT_EQ(layouts("halves"), (LayoutPair{Layout::Nchw(), Layout::Nchw(DataType::kF16)}));
  EXPECT_EQ(layouts("chosen"), (LayoutPair{Layout::Nchw(DataType::kBool), Layout::Nchw()}));
  EXPECT_EQ(layouts("flat").out, Layout::Nchw(DataType::kBool));
  Executor executor(network.graph, read, OpenDevice(SyntheticCpu(), 2));
  ExpectOutputs(executor, network.graph, network.inputs,
                RunReference(network.graph, Pointers(network.inputs)), 0);
}

TEST(TypedNetworks, TensorsOfOtherTypesAreRefused) {
  const TypedNetwork network(1);
  Executor executor(network.graph, PlansFor(network.graph)[0], OpenDevice(TestCpu(), 1));
  std::vector<Tensor> outputs = UnwrittenOutputs(network.graph);
  std::vector<Tensor> inputs = network.inputs;
  inputs[0] = Tensor(inputs[0].shape());
  EXPECT_THAT(RefusalOf([&] { executor.Run(Pointers(inputs), Pointers(outputs)); }),
              HasSubstr("input \"bytes\" is 1x3x6x7 NCHW, expected 1x3x6x7 NCHW:u8"));
  EXPECT_THAT(RefusalOf([&] { RunReference(network.graph, Pointers(inputs)); }), HasSubstr("\"bytes\""));
  outputs[1] = Tensor(outputs[1].shape(), Layout::Nchw(DataType::kI32));
  EXPECT_THAT(RefusalOf([&] { executor.Run(Pointers(network.inputs), Pointers(outputs)); }),
              HasSubstr("output \"picked\" is 1x4x6x7 NCHW:i32, expected 1x4x6x7 NCHW:i64"));
}

TEST(TypedNetworks, LayoutsOfTypesThatNothingOffersAreRefused) {
  const TypedNetwork network;
  const Plan plan = PlansFor(network.graph)[1];
  const auto with = [&](std::string_view name, const Layout& in, const Layout& out) {
    Plan changed = plan;
    std::ranges::find(changed.nodes, name, &NodePlan::node)->layouts = {in, out};
    return RefusalOf([&] { Executor(network.graph, changed, OpenDevice(TestCpu(), 1)); });
  };
  const Layout b8 = Layout::Blocked(8), bf16 = Layout::Blocked(8, DataType::kBf16);
  const Layout f16 = Layout::Blocked(8, DataType::kF16);
  EXPECT_THAT(with("a", b8, bf16), HasSubstr("layouts NCHW8c -> NCHW8c:bf16, but its config computes"));
  EXPECT_THAT(with("relu", f16, f16), HasSubstr("Relu does not run in NCHW8c:f16"));
  EXPECT_THAT(with("relu", b8, bf16), HasSubstr("cannot change layouts"));
  EXPECT_THAT(with("whole", Layout::Nchw(), Layout::Nchw(DataType::kI32)), HasSubstr("\"whole\""));
  EXPECT_THAT(with("whole", b8, Layout::Blocked(8, DataType::kI64)), HasSubstr("does not run in"));
  Plan ends = plan;
  ends.ends.inputs = Layout::Nhwc(DataType::kU8);
  EXPECT_THAT(RefusalOf([&] { Executor(network.graph, ends, OpenDevice(TestCpu(), 1)); }),
              HasSubstr("NHWC:u8"));
}

// What only moves elements moves those of every type, whatever the rank.
TEST(TypedNetworks, ElementsOfEveryTypeAreMoved) {
  for (int number = 0; number < kDataTypes; ++number) {
    const auto type = static_cast<DataType>(number);
    for (const Shape& shape :
         {Shape{5}, Shape{3, 4}, Shape{2, 3, 4}, Shape{2, 3, 2, 5}, Shape{2, 3, 1, 2, 2}}) {
      SCOPED_TRACE(testing::Message() << ShapeToString(shape) << " of " << DataTypeName(type));
      Graph graph("moves");
      const NodeId x = graph.Add("x", std::make_shared<InputOp>(shape, type), {});
      std::vector<int64_t> back(shape.size());
      std::iota(back.rbegin(), back.rend(), 0);
      const int64_t last = std::ssize(shape) - 1;
      const NodeId constant = graph.Add("constant", Constant(RandomOf(shape, type, 9)), {});
      const NodeId joined = graph.Add("joined", std::make_shared<ConcatOp>(last), {x, constant, x});
      const NodeId cut = graph.Add(
          "cut", std::make_shared<SliceOp>(std::vector<SliceRange>{{last, -1, -1000, -2}}), {joined});
      const NodeId turned = graph.Add("turned", std::make_shared<TransposeOp>(back), {joined});
      const NodeId flat = graph.Add("flat", std::make_shared<ViewOp>("Reshape", Shape{-1}), {turned});
      for (const NodeId output : {cut, turned, flat}) graph.MarkOutput(output);
      const std::vector<Tensor> inputs = {RandomOf(shape, type, 7)};
      const std::vector<Tensor> expected = RunReference(graph, Pointers(inputs));
      EXPECT_EQ(expected[2].type(), type);
      for (const Plan& plan : PlansFor(graph)) {
        Executor executor(graph, plan, OpenDevice(TestCpu(), 2));
        ExpectOutputs(executor, graph, inputs, expected, 0);
      }
    }
  }
}

TEST(TypedNetworks, BadValuesOfIntegersAreErrors) {
  Graph graph("bad");
  const NodeId a = graph.Add("a", std::make_shared<InputOp>(Shape{2}, DataType::kI32), {});
  const NodeId b = graph.Add("b", std::make_shared<InputOp>(Shape{2}, DataType::kI32), {});
  const NodeId ratio = graph.Add("ratio", std::make_shared<BinaryOp>(BinaryKind::kDiv), {a, b});
  graph.MarkOutput(graph.Add("picked", std::make_shared<GatherOp>(0), {ratio, a}));
  Executor executor(graph, HeuristicPlan(graph, TestCpu(), 1), OpenDevice(TestCpu(), 1));
  std::vector<Tensor> inputs(2, Tensor({2}, Layout::Nchw(DataType::kI32)));
  std::vector<Tensor> outputs = UnwrittenOutputs(graph);
  const auto run = [&] { executor.Run(Pointers(inputs), Pointers(outputs)); };
  EXPECT_THAT(RefusalOf(run), HasSubstr("by zero"));
  inputs[1].data<int32_t>()[0] = inputs[1].data<int32_t>()[1] = -1;
  inputs[0].data<int32_t>()[0] = std::numeric_limits<int32_t>::min();
  EXPECT_THAT(RefusalOf(run), HasSubstr("outside axis 0"));
  inputs[0].data<int32_t>()[0] = 1;
  EXPECT_EQ(RefusalOf(run), "no error");
  EXPECT_EQ(outputs[0].data<int32_t>()[1], -1);
}

}  // namespace
}  // namespace tilesmith
