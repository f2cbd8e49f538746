// Bytes stay bytes: what the pass makes of networks that quantise, and what it leaves alone.
#include <gmock/gmock.h>

#include "ops/passes/passes.h"
#include "ops/pool/quantized_max_pool.h"
#include "ops/quantize/quantized_binary.h"
#include "ops/quantize/quantized_conv.h"
#include "tests/ops/test_net.h"
#include "tests/ops/typed_kernel_check.h"
#include "tests/support/ops/quantized_net.h"

namespace tilesmith {
namespace {

using testing::ElementsAre;

// Sums of a conv are rounded on one side only, so results differ by a step here and there.
void ExpectWithinAStep(const Graph& before, const Graph& after, float step, double differing_share) {
  EXPECT_EQ(Names(before, before.outputs()), Names(after, after.outputs()));
  const Tensor want = Run(before)[0], got = Run(after)[0];
  ASSERT_EQ(want.shape(), got.shape());
  int64_t differing = 0;
  for (int64_t i = 0; i < want.size(); ++i) {
    const float difference = std::abs(want.floats()[i] - got.floats()[i]);
    ASSERT_LE(difference, 1.001f * step) << "element " << i;
    if (difference > 0.5f * step) ++differing;
  }
  EXPECT_LE(static_cast<double>(differing), differing_share * static_cast<double>(want.size()));
}

TEST(FuseQuantized, AConvItsReluAndWhatQuantisesAreOneOp) {
  QuantizedNet net;
  const auto x = net.Stored(net.Input({1, 5, 6, 7}));
  net.graph.MarkOutput(net.Stored(net.Relu(net.Conv(x, 11, 3))));
  const Graph fused = FuseQuantized(net.graph);
  EXPECT_THAT(Types(fused), ElementsAre("Input", "QuantizeLinear", "QuantizedConv", "DequantizeLinear"));
  const auto& conv = dynamic_cast<const QuantizedConvOp&>(*fused.node(2).op);
  EXPECT_EQ(conv.params().limits.low, 119);
  EXPECT_EQ(conv.params().limits.high, 255);
  ExpectWithinAStep(net.graph, fused, 0.02f, 0.01);
}

TEST(FuseQuantized, ABlockOfManyKinds) {
  const Graph graph = QuantizedBlock(12);
  const Graph fused = FuseQuantized(graph);
  EXPECT_THAT(Types(fused),
              ElementsAre("Input", "QuantizeLinear", "QuantizedConv", "QuantizedMaxPool", "QuantizedConv",
                          "QuantizedConv", "QuantizedAdd", "DequantizeLinear"));
  ExpectWithinAStep(graph, fused, 2 * 0.02f, 0.05);
}

TEST(FuseQuantized, WhatOthersReadStays) {
  QuantizedNet net;
  const auto x = net.Stored(net.Input({1, 4, 5, 5}));
  const auto conv = net.Conv(x, 4, 1);
  net.graph.MarkOutput(net.Stored(conv));
  net.graph.MarkOutput(conv);
  EXPECT_THAT(Types(FuseQuantized(net.graph)), ElementsAre("Input", "QuantizeLinear", "DequantizeLinear",
                                                           "Conv", "QuantizeLinear", "DequantizeLinear"));
}

TEST(FuseQuantized, AnotherScaleIsNoMove) {
  QuantizedNet net;
  const auto x = net.Stored(net.Input({1, 4, 5, 5}));
  net.graph.MarkOutput(net.Stored(net.MaxPool(x), {DataType::kU8, 0, {0.03f}, {119}}));
  EXPECT_THAT(Types(FuseQuantized(net.graph)), testing::Contains("MaxPool"));
}

TEST(FuseQuantized, ABiasOfAnotherScaleStaysAConvOfFloats) {
  QuantizedNet net;
  const auto x = net.Stored(net.Input({1, 4, 5, 5}));
  net.graph.MarkOutput(net.Stored(net.Conv(x, 4, 1, {DataType::kU8, 0, {0.5f}, {0}})));
  EXPECT_THAT(Types(FuseQuantized(net.graph)), testing::Contains("Conv"));
}

TEST(QuantizedBinary, KernelsDoWhatTheReferenceDoes) {
  uint64_t seed = 3;
  for (const DataType type : {DataType::kU8, DataType::kI8}) {
    const StoredRange range = RangeOf(type);
    for (const BinaryKind kind : {BinaryKind::kAdd, BinaryKind::kMul}) {
      for (const Shape& shape : {Shape{2, 9, 3, 5}, Shape{1, 64, 56, 56}, Shape{37}, Shape{}}) {
        TestRandom random(++seed);
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        const auto any = [&] {
          return Quantization{
              type, 0, {random.Uniform(0.001f, 2)}, {int32_t(random.Integer(range.low, range.high))}};
        };
        QuantizedBinaryParams params{kind, any(), any(), any(), range};
        if (random.Integer(0, 1) == 1) params.limits.low = params.output.zero_points[0];
        CheckTypedKernel(QuantizedBinaryOp(params),
                         {AnyStored(shape, type, seed), AnyStored(shape, type, seed + 100)});
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Sums that lie between two steps, where a product that is not rounded before it is added decides.
TEST(QuantizedBinary, ProductsAreRoundedBeforeTheyAreAdded) {
  const auto q = [](float scale) { return Quantization{DataType::kU8, 0, {scale}, {100}}; };
  const QuantizedBinaryParams params{BinaryKind::kAdd, q(0.1f), q(0.3f), q(0.2f), RangeOf(DataType::kU8)};
  const Shape shape = {1, 8, 64, 64};
  CheckTypedKernel(QuantizedBinaryOp(params),
                   {AnyStored(shape, DataType::kU8, 1), AnyStored(shape, DataType::kU8, 2)});
}

TEST(QuantizedMaxPool, KernelsDoWhatTheReferenceDoes) {
  uint64_t seed = 3;
  for (const DataType type : {DataType::kU8, DataType::kI8}) {
    for (const PoolWindow& window : {PoolWindow{PoolKind::kMax, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1},
                                     PoolWindow{PoolKind::kMax, 2, 5, 1, 3, 2, 1, 0, 2, 1, 0},
                                     PoolWindow{PoolKind::kMax, 2, 2, 2, 2, 1, 1, 0, 0, 0, 0, true}}) {
      for (const Shape& shape : {Shape{2, 9, 7, 5}, Shape{1, 40, 8, 9}, Shape{3, 1, 5, 11}}) {
        SCOPED_TRACE(testing::Message() << "seed " << ++seed);
        CheckTypedKernel(QuantizedMaxPoolOp(window), {AnyStored(shape, type, seed)});
        if (HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace tilesmith
