#include "ops/passes/passes.h"

#include <gmock/gmock.h>

#include "ops/dense/gemm.h"
#include "ops/elementwise/activations.h"
#include "ops/movement/transpose.h"
#include "ops/pool/pool.h"
#include "tests/ops/test_net.h"

namespace tilesmith {
namespace {

using Id = Graph::NodeId;
using testing::ElementsAre;

TEST(Passes, FoldConstants) {
  Net net;
  const Id x = net.Input("x", {1, 3, 2, 2});
  const Id one = net.graph.Add("one", std::make_shared<ConstantOp>(RandomTensor({1, 3, 2, 2}, 7)), {});
  const Id sum = net.Add("sum", net.Relu("relu", one), one);
  net.graph.MarkOutput(net.Add("y", x, sum));
  net.graph.MarkOutput(sum);
  const Graph folded = FoldConstants(net.graph);
  EXPECT_THAT(Types(folded), ElementsAre("Input", "Constant", "Add"));
  ExpectSame(net.graph, folded);
}

TEST(Passes, Canonicalize) {
  Net net;
  const Id x = net.Input("x", {1, 6, 1, 5});
  const Id slope = net.graph.Add("slope", std::make_shared<PReluOp>(std::vector<float>(6, 0.3f)), {x});
  const Id slopes = net.graph.Add("slopes", std::make_shared<PReluOp>(Uniform(6, 3)), {slope});
  const Id moved =
      net.graph.Add("moved", std::make_shared<TransposeOp>(std::vector<int64_t>{1, 2, 0, 3}), {slopes});
  net.graph.MarkOutput(
      net.graph.Add("real", std::make_shared<TransposeOp>(std::vector<int64_t>{3, 0, 1, 2}), {moved}));
  const Graph simple = Canonicalize(net.graph);
  EXPECT_THAT(Types(simple), ElementsAre("Input", "LeakyRelu", "PRelu", "Reshape", "Transpose"));
  ExpectSame(net.graph, simple);
}

TEST(Passes, RemoveIdentities) {
  Net net;
  const Id x = net.Input("x", {1, 3, 2, 2});
  const Id same = net.View("same", x, "Identity");
  const Id pad = net.Pad("pad", same, {0, 0, 0, 0}, {0, 0, 0, 0});
  const Id none = net.Act("none", pad, {ActivationKind::kNone});
  const Id one = net.graph.Add(
      "one", std::make_shared<ScaleShiftOp>(std::vector<float>(3, 1.0f), std::vector<float>(3, 0.0f)),
      {none});
  const Id relu = net.Relu("relu", one);
  const Id drop = net.View("drop", relu, "Dropout");
  net.graph.MarkOutput(net.Concat("out", {drop}));
  const Graph bare = RemoveIdentities(net.graph);
  EXPECT_THAT(Types(bare), ElementsAre("Input", "Relu"));
  ExpectSame(net.graph, bare);
}

TEST(Passes, RemoveIdentitiesKeepsOutputsApart) {
  Net net;
  const Id x = net.Input("x", {1, 3, 2, 2});
  const Id relu = net.Relu("relu", x);
  net.graph.MarkOutput(net.View("second", relu, "Identity"));
  net.graph.MarkOutput(net.View("first", relu, "Identity"));
  net.graph.MarkOutput(net.View("copy", x, "Identity"));
  const Graph bare = RemoveIdentities(net.graph);
  EXPECT_THAT(Types(bare), ElementsAre("Input", "Relu", "Identity", "Identity"));
  ExpectSame(net.graph, bare);
}

TEST(Passes, FoldPadIntoConvAndAveragePool) {
  Net net;
  const Id x = net.Input("x", {2, 3, 5, 6});
  const Id pad = net.Pad("pad", x, {0, 0, 1, 2}, {0, 0, 3, 0});
  net.graph.MarkOutput(net.Conv("conv", pad, 4, 3, true));
  PoolWindow window{.kind = PoolKind::kAverage, .kh = 3, .kw = 2, .sh = 2, .sw = 1};
  net.graph.MarkOutput(net.graph.Add("mean", std::make_shared<PoolOp>(window), {pad}));
  const Graph folded = FoldPad(net.graph);
  EXPECT_THAT(Types(folded), ElementsAre("Input", "Conv", "AveragePool"));
  const ConvWorkload& w = ConvNamed(folded, "conv").workload();
  EXPECT_EQ(w.ph, 2);
  EXPECT_EQ(w.pad_bottom(), 4);
  EXPECT_EQ(w.pad_right(), 1);
  ExpectSame(net.graph, folded);
}

TEST(Passes, FoldPadLeavesWhatIsNoZeroPadding) {
  Net net;
  const Id x = net.Input("x", {1, 3, 5, 5});
  const Id ones = net.Pad("ones", x, {0, 0, 1, 1}, {0, 0, 1, 1}, 1.0f);
  net.graph.MarkOutput(net.Conv("a", ones, 2, 3));
  const Id far = net.Pad("far", x, {0, 0, 0, 0}, {0, 0, 9, 0});  // more than a workload can state
  net.graph.MarkOutput(net.Conv("c", far, 2, 3));
  const Id channels = net.Pad("channels", x, {0, 1, 0, 0}, {0, 0, 0, 0});
  net.graph.MarkOutput(net.Conv("b", channels, 2, 3));
  const Id zeros = net.Pad("zeros", x, {0, 0, 1, 1}, {0, 0, 1, 1});
  PoolWindow window{.kind = PoolKind::kMax, .kh = 2, .kw = 2};
  net.graph.MarkOutput(net.graph.Add("max", std::make_shared<PoolOp>(window), {zeros}));
  window.kind = PoolKind::kAverage, window.top = window.left = 1;  // its own padding is not counted
  net.graph.MarkOutput(net.graph.Add("mean", std::make_shared<PoolOp>(window), {zeros}));
  const Graph folded = FoldPad(net.graph);
  EXPECT_EQ(folded.size(), net.graph.size());
  ExpectSame(net.graph, folded);
}

TEST(Passes, FoldScaleShift) {
  Net net;
  const Id x = net.Input("x", {2, 5, 4, 4});
  const Id first = net.Scale("bn2", net.Scale("bn1", net.Conv("conv1", x, 3, 3)));
  const Id second = net.Scale("bn3", net.Conv("conv2", first, 7, 1, true));
  net.graph.MarkOutput(second);
  const Graph folded = FoldScaleShift(net.graph);
  EXPECT_THAT(Types(folded), ElementsAre("Input", "Conv", "Conv"));
  EXPECT_TRUE(folded.Find("conv1"));
  EXPECT_TRUE(ConvNamed(folded, "bn3").workload().post.bias);
  ExpectSame(net.graph, folded);
}

TEST(Passes, FoldScaleShiftIntoGemm) {
  Net net;
  const Id x = net.Input("x", {3, 5});
  const Id gemm = net.graph.Add("fc", std::make_shared<GemmOp>(RandomTensor({4, 5}, 9), nullptr), {x});
  net.graph.MarkOutput(net.Scale("y", gemm));
  const Graph folded = FoldScaleShift(net.graph);
  EXPECT_THAT(Types(folded), ElementsAre("Input", "Gemm"));
  ExpectSame(net.graph, folded);
}

TEST(Passes, FoldScaleShiftNeedsTheOnlyUse) {
  Net net;
  const Id x = net.Input("x", {1, 2, 3, 3});
  const Id shared = net.Conv("shared", x, 2, 3);
  net.graph.MarkOutput(net.Add("sum", net.Scale("bn", shared), shared));
  const Id output = net.Conv("output", x, 2, 3);
  net.graph.MarkOutput(output);
  net.graph.MarkOutput(net.Scale("scaled", output));
  const Id relu = net.Relu("relu", net.Conv("conv", x, 2, 3));
  net.graph.MarkOutput(net.Scale("behind_relu", relu));
  const Graph folded = FoldScaleShift(FuseActivation(net.graph));
  EXPECT_EQ(std::ranges::count(Types(folded), "ScaleShift"), 3);
  ExpectSame(net.graph, folded);
}

TEST(Passes, MergeScaleShifts) {
  Net net;
  const Id x = net.Input("x", {1, 6, 2, 2});
  const Id relu = net.Relu("relu", net.Scale("c", net.Scale("b", net.Scale("a", x))));
  net.graph.MarkOutput(net.Scale("d", relu));
  const Graph merged = MergeScaleShifts(net.graph);
  EXPECT_THAT(Types(merged), ElementsAre("Input", "ScaleShift", "Relu", "ScaleShift"));
  ExpectSame(net.graph, merged);
}

TEST(Passes, FuseActivation) {
  Net net;
  const Id x = net.Input("x", {1, 4, 3, 3});
  const Id first = net.Act("clip", net.Conv("conv1", x, 4, 3), {ActivationKind::kClip, -0.5f, 0.5f});
  const Id second = net.Act("leaky", net.Scale("scale", first), {ActivationKind::kLeakyRelu, 0.2f});
  const Id third = net.Act("sigmoid", net.Conv("conv2", second, 4, 1), {ActivationKind::kSigmoid});
  net.graph.MarkOutput(net.Relu("y", net.Relu("relu", net.Conv("conv3", third, 4, 1))));
  const Graph fused = FuseActivation(net.graph);
  EXPECT_THAT(Types(fused), ElementsAre("Input", "Conv", "ScaleShift", "Conv", "Sigmoid", "Conv", "Relu"));
  EXPECT_EQ(ConvNamed(fused, "conv1").workload().post.activation.kind, ActivationKind::kClip);
  ExpectSame(net.graph, fused);
}

TEST(Passes, FuseResidual) {
  Net net;
  const Id x = net.Input("x", {1, 4, 3, 3});
  const Id shortcut = net.Conv("shortcut", x, 4, 1);
  const Id branch = net.Conv("branch2", net.Relu("r", net.Conv("branch1", x, 4, 3)), 4, 3);
  const Id block = net.Relu("block", net.Add("sum", branch, shortcut));
  const Id next = net.Conv("next", block, 4, 3);
  net.graph.MarkOutput(net.Relu("y", net.Add("sum2", block, next)));
  const Graph fused = FuseActivation(FuseResidual(FuseActivation(net.graph)));
  EXPECT_THAT(Types(fused), ElementsAre("Input", "Conv", "Conv", "Conv", "Conv"));
  EXPECT_FALSE(ConvNamed(fused, "shortcut").workload().post.sum);
  EXPECT_TRUE(ConvNamed(fused, "branch2").workload().post.sum);
  EXPECT_EQ(ConvNamed(fused, "y").workload().post.activation.kind, ActivationKind::kRelu);
  ExpectSame(net.graph, fused);
}

TEST(Passes, FuseResidualComputesTheOtherOperandFirst) {
  Net net;
  const Id x = net.Input("x", {1, 4, 3, 3});
  const Id early = net.Conv("early", x, 4, 3);
  const Id late = net.Relu("late", net.Scale("scale", x));
  net.graph.MarkOutput(net.Add("y", early, late));
  const Graph fused = FuseResidual(net.graph);
  EXPECT_THAT(Types(fused), ElementsAre("Input", "ScaleShift", "Relu", "Conv"));
  ExpectSame(net.graph, fused);
}

TEST(Passes, FuseResidualLeavesOtherSums) {
  Net net;
  const Id x = net.Input("x", {2, 4, 3, 3});
  const Id doubled = net.Conv("doubled", x, 4, 3);
  net.graph.MarkOutput(net.Add("twice", doubled, doubled));
  const Id gate = net.Input("gate", {2, 4, 1, 1});
  net.graph.MarkOutput(net.Add("gated", net.Conv("wide", x, 4, 3), gate));
  const Id activated = net.Act("act", net.Conv("conv", x, 4, 3), {ActivationKind::kRelu});
  net.graph.MarkOutput(net.Add("sum", activated, x));
  const Graph fused = FuseResidual(FuseActivation(net.graph));
  EXPECT_EQ(std::ranges::count(Types(fused), "Add"), 3);
  ExpectSame(net.graph, fused);
}

TEST(Passes, ChainConcats) {
  Net net;
  const Id a = net.Input("a", {1, 2, 2, 2});
  const Id b = net.Conv("b", a, 3, 1);
  const Id ab = net.Concat("ab", {a, b});
  const Id c = net.Conv("c", ab, 3, 1);
  const Id abc = net.Concat("abc", {a, b, c});
  const Id d = net.Conv("d", abc, 3, 1);
  const Id abcd = net.Concat("abcd", {a, b, c, d});
  net.graph.MarkOutput(abcd);
  net.graph.MarkOutput(net.Concat("again", {a, b, c, d}));
  net.graph.MarkOutput(net.Concat("other", {b, a, c}));
  const Graph chained = ChainConcats(net.graph);
  const auto inputs = [&](const std::string& name) {
    return Names(chained, chained.Inputs(*chained.Find(name)));
  };
  EXPECT_THAT(inputs("ab"), ElementsAre("a", "b"));
  EXPECT_THAT(inputs("abc"), ElementsAre("ab", "c"));
  EXPECT_THAT(inputs("abcd"), ElementsAre("abc", "d"));
  EXPECT_THAT(inputs("other"), ElementsAre("b", "a", "c"));
  ExpectSame(net.graph, chained);
}

TEST(Passes, OptimizeGraphFoldsABlock) {
  Net net;
  const Id x = net.Input("x", {1, 4, 6, 6});
  const Id pad = net.Pad("pad", net.View("drop", x, "Dropout"), {0, 0, 1, 1}, {0, 0, 1, 1});
  Id y = net.Relu("relu1", net.Scale("bn1", net.Conv("conv1", pad, 4, 3)));
  y = net.Scale("bn2", net.Conv("conv2", y, 4, 1));
  const Id skip = net.Scale("bn_skip", net.Conv("skip", pad, 4, 3));
  y = net.Relu("relu2", net.Add("add", skip, y));
  net.graph.MarkOutput(net.View("y", y, "Identity"));
  const Graph optimized = OptimizeGraph(net.graph);
  EXPECT_THAT(Types(optimized), ElementsAre("Input", "Conv", "Conv", "Conv"));
  ExpectSame(net.graph, optimized);
}

}  // namespace
}  // namespace tilesmith
