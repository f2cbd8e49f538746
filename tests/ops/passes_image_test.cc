// The passes that segmentation and detection networks need: gates, "focus" layers, transposed convs.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <functional>

#include "ops/conv/conv_transpose.h"
#include "ops/movement/indexing.h"
#include "ops/passes/passes.h"
#include "tests/ops/test_net.h"

namespace tilesmith {
namespace {

using Id = Graph::NodeId;
using testing::ElementsAre;

Id Uniformly(Net& net, const std::string& name, Id x, float scale, float shift) {
  const size_t channels = net.graph.node(x).shape[1];
  return net.graph.Add(name,
                       std::make_shared<ScaleShiftOp>(std::vector<float>(channels, scale),
                                                      std::vector<float>(channels, shift)),
                       {x});
}

Id Mul(Net& net, const std::string& name, Id a, Id b) {
  return net.graph.Add(name, std::make_shared<BinaryOp>(BinaryKind::kMul), {a, b});
}

TEST(RecognizeGates, SiluOnEitherSide) {
  Net net;
  const Id x = net.Conv("conv", net.Input("x", {1, 3, 4, 4}), 5, 3);
  const Id first = Mul(net, "first", x, net.Act("gate", x, {ActivationKind::kSigmoid}));
  const Id gate = net.Act("gate2", first, {ActivationKind::kSigmoid});
  net.graph.MarkOutput(Mul(net, "y", gate, first));
  net.graph.MarkOutput(gate);  // used elsewhere too: it stays
  const Graph found = RecognizeGates(net.graph);
  EXPECT_THAT(Types(found), ElementsAre("Input", "Conv", "Silu", "Sigmoid", "Silu"));
  ExpectSame(net.graph, found);
}

TEST(RecognizeGates, HardSwishHoweverItIsSpelt) {
  const auto type_of = [](const std::function<Id(Net&, Id)>& spell) {
    Net net;
    const Id x = net.Scale("bn", net.Input("x", {2, 3, 3, 3}));
    net.graph.MarkOutput(spell(net, x));
    const Graph found = OptimizeGraph(net.graph);
    ExpectSame(net.graph, found);
    EXPECT_EQ(found.size(), 2u) << fmt::format("{}", fmt::join(Types(found), " "));
    const auto* op = found.As<ScaleShiftOp>(1);
    return op == nullptr ? ActivationKind::kNone : op->activation().kind;
  };
  const Activation relu6{ActivationKind::kClip, 0, 6};
  EXPECT_EQ(type_of([](Net& net, Id x) {
              return Mul(net, "y", x, net.Act("g", x, {ActivationKind::kHardSigmoid, 1 / 6.0f, 0.5f}));
            }),
            ActivationKind::kHardSwish);
  EXPECT_EQ(type_of([&](Net& net, Id x) {
              const Id clip = net.Act("clip", Uniformly(net, "plus", x, 1, 3), relu6);
              return Uniformly(net, "y", Mul(net, "mul", x, clip), 1 / 6.0f, 0);
            }),
            ActivationKind::kHardSwish);
  EXPECT_EQ(type_of([&](Net& net, Id x) {
              const Id clip = net.Act("clip", Uniformly(net, "plus", x, 1, 3), relu6);
              return Mul(net, "y", Uniformly(net, "sixth", clip, 1 / 6.0f, 0), x);
            }),
            ActivationKind::kHardSwish);
}

TEST(RecognizeGates, KeepsTheFactor) {
  Net net;
  const Id x = net.Input("x", {2, 3, 3, 3});
  const Id clip = net.Act("clip", Uniformly(net, "plus", x, 1, 3), {ActivationKind::kClip, 0, 6});
  net.graph.MarkOutput(Mul(net, "y", x, clip));
  const Graph found = RecognizeGates(net.graph);
  EXPECT_THAT(Types(found), ElementsAre("Input", "HardSwish", "ScaleShift"));
  ExpectSame(net.graph, found);
}

TEST(RecognizeGates, LeavesWhatIsNoGate) {
  Net net;
  const Id x = net.Input("x", {1, 3, 3, 3}), other = net.Input("other", {1, 3, 3, 3});
  net.graph.MarkOutput(Mul(net, "a", x, net.Act("g1", other, {ActivationKind::kSigmoid})));
  net.graph.MarkOutput(Mul(net, "b", x, net.Act("g2", x, {ActivationKind::kHardSigmoid, 0.2f, 0.5f})));
  net.graph.MarkOutput(net.Add("c", x, net.Act("g3", x, {ActivationKind::kSigmoid})));
  const Id plus = Uniformly(net, "plus", x, 1, 2);
  net.graph.MarkOutput(Mul(net, "d", x, net.Act("g4", plus, {ActivationKind::kClip, 0, 6})));
  net.graph.MarkOutput(Mul(net, "e", x, net.Scale("uneven", net.Act("g5", x, {ActivationKind::kSigmoid}))));
  const Graph found = RecognizeGates(net.graph);
  EXPECT_EQ(Types(found), Types(net.graph));
}

TEST(MergeGatedSums, InAnyOrder) {
  Net net;
  const Id x = net.Input("x", {2, 3, 4, 4}), gate = net.Input("gate", {2, 3, 1, 1});
  const Id a = net.Add("a", x, Mul(net, "xg", x, gate));
  net.graph.MarkOutput(net.Add("b", Mul(net, "ga", gate, a), a));
  const Graph merged = MergeGatedSums(net.graph);
  EXPECT_THAT(Types(merged), ElementsAre("Input", "Input", "ScaleShift", "Mul", "ScaleShift", "Mul"));
  ExpectSame(net.graph, merged);
}

TEST(MergeGatedSums, LeavesOtherSums) {
  Net net;
  const Id x = net.Input("x", {2, 3, 4, 4}), other = net.Input("other", {2, 3, 4, 4});
  const Id gate = net.Input("gate", {2, 3, 1, 1});
  net.graph.MarkOutput(net.Add("a", other, Mul(net, "m1", x, gate)));
  net.graph.MarkOutput(net.Add("b", x, Mul(net, "m2", x, other)));
  const Id shared = Mul(net, "m3", x, gate);
  net.graph.MarkOutput(net.Add("c", x, shared));
  net.graph.MarkOutput(net.Relu("d", shared));
  net.graph.MarkOutput(net.Add("e", gate, Mul(net, "m4", gate, other)));
  EXPECT_EQ(Types(MergeGatedSums(net.graph)), Types(net.graph));
}

TEST(PushScaleShift, IntoEveryConvThatReadsItUnpadded) {
  Net net;
  const Id x = net.Relu("relu", net.Input("x", {2, 4, 5, 5}));
  const Id both = net.Scale("both", x);
  net.graph.MarkOutput(net.Conv("a", both, 3, 1));
  net.graph.MarkOutput(net.Add("sum", net.Conv("b", both, 6, 1, true), net.Conv("c", x, 6, 3)));
  const ConvWorkload grouped = ParseWorkload("g2mb2ic4ih5oc6oh4kh2");
  net.graph.MarkOutput(net.graph.Add(
      "grouped", std::make_shared<ConvOp>(grouped, RandomTensor(grouped.weights_shape(), 77), nullptr),
      {net.Scale("alone", x)}));
  const Graph pushed = PushScaleShift(net.graph);
  EXPECT_THAT(Types(pushed), ElementsAre("Input", "Relu", "Conv", "Conv", "Conv", "Add", "Conv"));
  ExpectSame(net.graph, pushed);
}

TEST(PushScaleShift, StaysWhereAnythingElseReadsIt) {
  Net net;
  const Id x = net.Relu("relu", net.Input("x", {1, 4, 5, 5}));
  const Id padded = net.Scale("padded", x);
  net.graph.MarkOutput(net.Conv("a", padded, 3, 1));
  net.graph.MarkOutput(net.Conv("b", padded, 3, 3));
  const Id output = net.Scale("output", x);
  net.graph.MarkOutput(output);
  net.graph.MarkOutput(net.Conv("c", output, 3, 1));
  const Id residual = net.Scale("residual", x);
  net.graph.MarkOutput(net.Add("sum", net.Conv("d", residual, 4, 1), residual));
  const Id activated = net.graph.Add(
      "activated",
      std::make_shared<ScaleShiftOp>(Uniform(4, 1), Uniform(4, 2), Activation{ActivationKind::kRelu}), {x});
  net.graph.MarkOutput(net.Conv("e", activated, 3, 1));
  EXPECT_EQ(Types(PushScaleShift(net.graph)), Types(net.graph));
  const Graph fused = FuseResidual(net.graph);  // now one conv reads it twice
  EXPECT_EQ(Types(PushScaleShift(fused)), Types(fused));
}

Id Cut(Net& net, const std::string& name, Id x, std::vector<SliceRange> ranges) {
  return net.graph.Add(name, std::make_shared<SliceOp>(std::move(ranges)), {x});
}

constexpr int64_t kEnd = INT64_MAX;

// The four quarters in YOLO's order: (0, 0), (1, 0), (0, 1), (1, 1), rows cut before columns.
Id Focus(Net& net, Id x, int64_t last_row = 1) {
  const std::vector<std::pair<int64_t, int64_t>> starts = {{0, 0}, {1, 0}, {0, 1}, {last_row, 1}};
  std::vector<Id> quarters;
  for (const auto& [row, column] : starts) {
    const std::string name = fmt::format("{}.{}", row, column);
    const Id rows = Cut(net, name + " rows", x, {{2, row, kEnd, 2}});
    quarters.push_back(Cut(net, name, rows, {{3, column, kEnd, 2}}));
  }
  return net.Concat("focus", quarters);
}

TEST(FoldSpaceToDepth, FocusLayerBecomesALargerConv) {
  Net net;
  const Id x = net.Input("x", {2, 3, 8, 12});
  const Id focus = Focus(net, x);
  net.graph.MarkOutput(net.Conv("conv", focus, 5, 3, true));
  net.graph.MarkOutput(net.Conv("pointwise", focus, 2, 1));
  const Graph folded = FoldSpaceToDepth(net.graph);
  EXPECT_THAT(Types(folded), ElementsAre("Input", "Conv", "Conv"));
  EXPECT_EQ(WorkloadToString(ConvNamed(folded, "conv").workload()), "mb2ic3ih8iw12oc5oh4ow6kh6sh2ph2+bias");
  ExpectSame(net.graph, folded);
}

TEST(FoldSpaceToDepth, OneCutPerPhaseAndOtherSteps) {
  Net net;
  const Id x = net.Relu("relu", net.Input("x", {1, 2, 6, 4}));
  std::vector<Id> phases;
  for (const int64_t row : {2, 0, 1}) {
    phases.push_back(Cut(net, "", x, {{2, row, kEnd, 3}}));
  }
  net.graph.MarkOutput(net.Conv("conv", net.Concat("cat", phases), 3, 3));
  const Graph folded = FoldSpaceToDepth(net.graph);
  EXPECT_THAT(Types(folded), ElementsAre("Input", "Relu", "Conv"));
  ExpectSame(net.graph, folded);
}

TEST(FoldSpaceToDepth, LeavesOtherConcats) {
  const auto stays = [](const std::function<void(Net&, Id)>& build) {
    Net net;
    build(net, net.Input("x", {1, 3, 8, 8}));
    EXPECT_EQ(Types(FoldSpaceToDepth(net.graph)), Types(net.graph));
  };
  stays([](Net& net, Id x) { net.graph.MarkOutput(net.Conv("twice", Focus(net, x, 0), 5, 3)); });
  stays([](Net& net, Id x) {
    const Id focus = Focus(net, x);
    net.graph.MarkOutput(net.Conv("a", focus, 5, 3));
    net.graph.MarkOutput(net.Relu("b", focus));
  });
  stays([](Net& net, Id x) {
    const Id focus = Focus(net, x);
    net.graph.MarkOutput(net.Conv("a", focus, 5, 3));
    net.graph.MarkOutput(focus);
  });
  stays([](Net& net, Id x) {
    const Id part = Cut(net, "part", x, {{2, 0, 4, 1}}), rest = Cut(net, "rest", x, {{2, 4, 8, 1}});
    net.graph.MarkOutput(net.Conv("halves", net.Concat("cat", {part, rest}), 5, 1));
  });
}

struct TransposedNetCase {
  Shape input, weights;
  int64_t groups, sh, sw, top, left, oh, ow;
};

Graph TransposedNet(const TransposedNetCase& c, uint64_t seed, const Activation& activation = {}) {
  Net net;
  net.seed = seed;
  const ConvTransposeParams params{.input = c.input,
                                   .groups = c.groups,
                                   .sh = c.sh,
                                   .sw = c.sw,
                                   .top = c.top,
                                   .left = c.left,
                                   .oh = c.oh,
                                   .ow = c.ow};
  const auto bias = seed % 2 == 0 ? RandomTensor({c.groups * c.weights[1]}, seed) : nullptr;
  const auto op =
      std::make_shared<ConvTransposeOp>(params, RandomTensor(c.weights, seed + 1), bias, activation);
  net.graph.MarkOutput(net.graph.Add("up", op, {net.Input("x", c.input)}));
  return net.graph;
}

TEST(LowerConvTranspose, UsualOnesBecomeConvAndShuffle) {
  const TransposedNetCase cases[] = {
      {{2, 3, 4, 5}, {3, 4, 2, 2}, 1, 2, 2, 0, 0, 8, 10},  // 2x2/2
      {{1, 3, 4, 4}, {3, 4, 4, 4}, 1, 2, 2, 1, 1, 8, 8},   // 4x4/2, padded by 1
      {{1, 3, 4, 4}, {3, 4, 3, 3}, 1, 2, 2, 1, 1, 8, 8},   // 3x3/2, padded by 1, one more at the end
      {{1, 4, 3, 3}, {4, 1, 4, 4}, 4, 2, 2, 1, 1, 6, 6},   // bilinear upsampling, channel by channel
      {{1, 3, 4, 4}, {3, 2, 2, 3}, 1, 3, 1, 0, 1, 11, 4},  // a kernel smaller than its stride
      {{1, 2, 4, 4}, {2, 2, 2, 2}, 1, 2, 2, 1, 1, 5, 6},   // pads that cut input rows off
  };
  for (const TransposedNetCase& c : cases) {
    SCOPED_TRACE(fmt::format("{} stride {}x{}", ShapeToString(c.weights), c.sh, c.sw));
    const Graph graph = TransposedNet(c, 2, {ActivationKind::kRelu}), lowered = LowerConvTranspose(graph);
    EXPECT_THAT(Types(lowered), ElementsAre("Input", "Conv", "DepthToSpace"));
    ExpectSame(graph, lowered);
  }
  const Graph flat = TransposedNet({{1, 3, 4, 4}, {3, 4, 3, 3}, 1, 1, 1, 1, 1, 4, 4}, 2);
  EXPECT_THAT(Types(LowerConvTranspose(flat)), ElementsAre("Input", "Conv"));
  ExpectSame(flat, LowerConvTranspose(flat));
}

TEST(LowerConvTranspose, KeepsTheMeaningOfAll) {
  size_t lowered_count = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    TestRandom random(seed);
    TransposedNetCase c;
    c.groups = random.Integer(1, 2);
    const int64_t channels = c.groups * random.Integer(1, 3);
    c.input = {random.Integer(1, 2), channels, random.Integer(1, 4), random.Integer(1, 4)};
    c.weights = {channels, random.Integer(1, 3), random.Integer(1, 5), random.Integer(1, 5)};
    c.sh = random.Integer(1, 3), c.sw = random.Integer(1, 3);
    c.top = random.Integer(0, 4), c.left = random.Integer(0, 4);
    // Up to one more than what the input reaches.
    const auto size = [&](int64_t in, int64_t stride, int64_t kernel, int64_t begin) {
      return random.Integer(1, std::max<int64_t>(stride * (in - 1) + kernel - begin + 1, 1));
    };
    c.oh = size(c.input[2], c.sh, c.weights[2], c.top), c.ow = size(c.input[3], c.sw, c.weights[3], c.left);
    const Graph graph = TransposedNet(c, seed);
    const Graph lowered = LowerConvTranspose(graph);
    lowered_count += Types(lowered)[1] == "Conv";
    ExpectSame(graph, lowered);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(lowered_count, 200u);
}

TEST(LowerConvTranspose, DilatedOnesStay) {
  Net net;
  const ConvTransposeParams params{.input = {1, 2, 3, 3}, .dh = 2, .dw = 1, .oh = 5, .ow = 4};
  const auto op = std::make_shared<ConvTransposeOp>(params, RandomTensor({2, 2, 2, 2}, 3), nullptr);
  net.graph.MarkOutput(net.graph.Add("up", op, {net.Input("x", {1, 2, 3, 3})}));
  EXPECT_THAT(Types(OptimizeGraph(net.graph)), ElementsAre("Input", "ConvTranspose"));
}

TEST(LowerConvTranspose, TakesWhatFollowsAlong) {
  Net net;
  const ConvTransposeParams params{.input = {1, 3, 4, 4}, .sh = 2, .sw = 2, .oh = 8, .ow = 8};
  const Id up =
      net.graph.Add("up", std::make_shared<ConvTransposeOp>(params, RandomTensor({3, 5, 2, 2}, 3), nullptr),
                    {net.Input("x", {1, 3, 4, 4})});
  net.graph.MarkOutput(net.Relu("y", net.Scale("bn", net.Scale("plus", up))));
  const Graph optimized = OptimizeGraph(net.graph);
  EXPECT_THAT(Types(optimized), ElementsAre("Input", "Conv", "DepthToSpace"));
  EXPECT_EQ(ConvNamed(optimized, "y.conv").workload().post.activation.kind, ActivationKind::kRelu);
  ExpectSame(net.graph, optimized);
}

}  // namespace
}  // namespace tilesmith
