// Bytes stay bytes: what the pass makes of networks that quantise, and what it leaves alone.
#include <gmock/gmock.h>

#include "ops/elementwise/batch_norm.h"
#include "ops/movement/concat.h"
#include "ops/passes/passes.h"
#include "ops/pool/quantized_pool.h"
#include "ops/quantize/byte_table.h"
#include "ops/quantize/quantized_binary.h"
#include "ops/quantize/quantized_conv.h"
#include "ops/quantize/quantized_scale_shift.h"
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

// One scale, and any zero point of the type.
Quantization AnyQuantization(DataType type, TestRandom& random) {
  const StoredRange range = RangeOf(type);
  return {
      type, 0, {random.Uniform(0.001f, 2)}, {static_cast<int32_t>(random.Integer(range.low, range.high))}};
}

TEST(FuseQuantized, AConvItsReluAndWhatQuantisesAreOneOp) {
  QuantizedNet net;
  const auto x = net.Stored(net.Input({1, 5, 6, 7}));
  net.graph.MarkOutput(net.Stored(net.Relu(net.Conv(x, 11, 3))));
  const Graph fused = FuseQuantized(net.graph);
  EXPECT_THAT(Types(fused), ElementsAre("Input", "QuantizeLinear", "QuantizedConv", "DequantizeLinear"));
  const auto& conv = *fused.As<QuantizedConvOp>(2);
  EXPECT_EQ(conv.params().limits.low, 119);
  EXPECT_EQ(conv.params().limits.high, 255);
  ExpectWithinAStep(net.graph, fused, 0.02f, 0.01);
}

TEST(FuseQuantized, ABlockOfManyKinds) {
  const Graph graph = QuantizedBlock(12);
  const Graph fused = FuseQuantized(graph);
  EXPECT_THAT(Types(fused), ElementsAre("Input", "QuantizeLinear", "QuantizedConv", "QuantizedMaxPool",
                                        "QuantizedConv", "QuantizedConv", "DequantizeLinear"));
  ExpectWithinAStep(graph, fused, 2 * 0.02f, 0.05);
}

TEST(FuseQuantized, WhatOthersReadStays) {
  QuantizedNet net;
  const auto x = net.Stored(net.Input({1, 4, 5, 5}));
  const auto conv = net.Conv(x, 4, 1);
  net.graph.MarkOutput(net.Stored(conv));
  net.graph.MarkOutput(conv);
  EXPECT_THAT(Types(FuseQuantized(net.graph)),
              ElementsAre("Input", "QuantizeLinear", "QuantizedConv", "QuantizeLinear", "DequantizeLinear"));
}

TEST(FuseQuantized, AConvTakesTheSumBehindItAlong) {
  for (const bool swapped : {false, true}) {
    QuantizedNet net;
    const auto x = net.Stored(net.Input({1, 8, 5, 6}));
    const auto conv = net.Stored(net.Conv(x, 8, 3), {DataType::kU8, 0, {0.03f}, {100}});
    net.graph.MarkOutput(net.Stored(net.Relu(swapped ? net.Add(x, conv) : net.Add(conv, x))));
    const Graph fused = FuseQuantized(net.graph);
    ASSERT_THAT(Types(fused), ElementsAre("Input", "QuantizeLinear", "QuantizedConv", "DequantizeLinear"));
    const auto& op = *fused.As<QuantizedConvOp>(2);
    ASSERT_TRUE(op.params().sum);
    EXPECT_EQ(op.params().sum->residual, net.activations);
    EXPECT_EQ(op.params().sum->limits.low, 119);
    // It is rounded once, so that many differ by a step, and none by more.
    ExpectWithinAStep(net.graph, fused, 0.02f, 0.5);
  }
}

// Where the convolution's steps are twice the sum's or more, to leave out their rounding is more than a step.
TEST(FuseQuantized, ASumOfSmallerStepsStays) {
  QuantizedNet net;
  const auto x = net.Stored(net.Input({1, 8, 5, 6}));
  const auto conv = net.Stored(net.Conv(x, 8, 3), {DataType::kU8, 0, {0.04f}, {100}});
  net.graph.MarkOutput(net.Stored(net.Add(conv, x)));
  const Graph fused = FuseQuantized(net.graph);
  EXPECT_THAT(Types(fused),
              ElementsAre("Input", "QuantizeLinear", "QuantizedConv", "QuantizedAdd", "DequantizeLinear"));
  ExpectWithinAStep(net.graph, fused, 2 * 0.02f, 0.03);
}

TEST(FuseQuantized, DenseLayersAreConvsOnBytes) {
  for (const bool last : {false, true}) {
    for (const int64_t rows : {1, 5}) {
      QuantizedNet net;
      const auto x = net.Stored(net.Input({rows, 40}));
      const auto dense = net.Dense(x, 11);
      net.graph.MarkOutput(last ? dense : net.Stored(net.Relu(dense)));
      const Graph fused = FuseQuantized(net.graph);
      EXPECT_THAT(Types(fused), testing::Contains("QuantizedConv"));
      EXPECT_THAT(Types(fused), testing::Not(testing::Contains("Gemm")));
      if (last) {
        EXPECT_THAT(Types(fused), testing::Not(testing::Contains("DequantizeLinear")));
        ExpectWithinAStep(net.graph, fused, 1e-4f, 0);
      } else {
        ExpectWithinAStep(net.graph, fused, 0.02f, 0.03);
      }
    }
  }
}

TEST(FuseQuantized, MeansOverWindowsAndImages) {
  QuantizedNet net;
  const auto x = net.Stored(net.Input({2, 9, 7, 8}));
  const auto pooled = net.Stored(net.AveragePool(x));
  net.graph.MarkOutput(net.Stored(net.GlobalAveragePool(pooled), {DataType::kU8, 0, {0.005f}, {119}}));
  const Graph fused = FuseQuantized(net.graph);
  EXPECT_THAT(Types(fused), ElementsAre("Input", "QuantizeLinear", "QuantizedAveragePool",
                                        "QuantizedAveragePool", "DequantizeLinear"));
  ExpectWithinAStep(net.graph, fused, 2 * 0.005f, 0.1);
}

// A batch normalization between bytes, with and without a Relu behind it; not where the scales make no
// numbers.
TEST(FuseQuantized, ScalesAndShiftsOfChannels) {
  for (const bool relu : {false, true}) {
    for (const float huge : {1.0f, 1.6e38f}) {
      QuantizedNet net;
      TestRandom random(7);
      std::vector<float> scale(11), shift(11);
      for (float& value : scale) value = random.Uniform(-2, 2) * huge;
      scale[3] = 1.9f * huge;
      for (float& value : shift) value = random.Uniform(-1, 1);
      auto x = net.Stored(net.Input({2, 11, 5, 7}));
      x = net.graph.Add("norm", std::make_shared<ScaleShiftOp>(scale, shift), {x});
      if (relu) x = net.Relu(x);
      net.graph.MarkOutput(net.Stored(x, {DataType::kU8, 0, {0.015f}, {31}}));
      const Graph fused = FuseQuantized(net.graph);
      if (huge > 1) {
        EXPECT_THAT(Types(fused), testing::Contains("ScaleShift"));
        continue;
      }
      EXPECT_THAT(Types(fused),
                  ElementsAre("Input", "QuantizeLinear", "QuantizedScaleShift", "DequantizeLinear"));
      ExpectWithinAStep(net.graph, fused, 0.015f, 0.05);
    }
  }
}

// One of floats in front of what quantises, a Relu between them or in it; not one that others read, too, and
// one behind a convolution of floats goes into its weights.
TEST(FuseQuantizers, ScalesAndShiftsOfFloats) {
  enum class Case { kPlain, kRead, kBehindConv };
  for (const Case which : {Case::kPlain, Case::kRead, Case::kBehindConv}) {
    QuantizedNet net;
    auto x = net.Input({2, 11, 5, 7});
    if (which == Case::kBehindConv) x = net.Conv(x, 11, 1);
    const std::vector<float> scale(11, 1.25f), shift(11, -0.3f);
    x = net.Relu(net.graph.Add("norm", std::make_shared<ScaleShiftOp>(scale, shift), {x}));
    net.graph.MarkOutput(net.Stored(x, {DataType::kU8, 0, {0.015f}, {31}}));
    if (which == Case::kRead) net.graph.MarkOutput(x);
    const Graph fused = OptimizeGraph(net.graph);
    switch (which) {
      case Case::kPlain:
        EXPECT_THAT(Types(fused), ElementsAre("Input", "QuantizedScaleShift", "DequantizeLinear"));
        break;
      case Case::kRead:
        EXPECT_THAT(Types(fused), ElementsAre("Input", "ScaleShift", "QuantizeLinear", "DequantizeLinear"));
        break;
      case Case::kBehindConv:
        EXPECT_THAT(Types(fused), ElementsAre("Input", "Conv", "QuantizeLinear", "DequantizeLinear"));
    }
    ExpectWithinAStep(net.graph, fused, 0.015f, 0.01);
  }
}

// A sum whose term is read by another scale than the convolution in front of it was stored by.
TEST(FuseQuantized, ASumOfAnotherScaleIsNotTheConvolutions) {
  QuantizedNet net;
  const auto x = net.Stored(net.Input({1, 8, 6, 6}));
  const auto bytes =
      net.graph.Add("q", std::make_shared<QuantizeLinearOp>(net.activations), {net.Conv(x, 8, 3)});
  const auto read = net.graph.Add(
      "d", std::make_shared<DequantizeLinearOp>(Quantization{DataType::kU8, 0, {0.04f}, {110}}), {bytes});
  net.graph.MarkOutput(net.Stored(net.Add(read, x), {DataType::kU8, 0, {0.05f}, {100}}));
  const Graph fused = FuseQuantized(net.graph);
  EXPECT_THAT(Types(fused), testing::Contains("QuantizedAdd"));
  ExpectWithinAStep(net.graph, fused, 0.05f, 0.05);
}

// Tables hold what the nodes between the scales compute, so nothing differs.
TEST(FuseQuantized, FunctionsAndOtherScalesAreTables) {
  for (const Activation& function :
       {Activation{ActivationKind::kSigmoid}, Activation{ActivationKind::kLeakyRelu, 0.1f},
        Activation{ActivationKind::kHardSwish}, Activation{ActivationKind::kRelu},
        Activation{ActivationKind::kClip, 0.3f, 0.9f}}) {
    QuantizedNet net;
    const auto x = net.Stored(net.Input({2, 5, 3, 7}));
    const auto y = net.graph.Add("f", std::make_shared<ActivationOp>(function), {x});
    net.graph.MarkOutput(net.Stored(y, {DataType::kI8, 0, {0.01f}, {-3}}));
    const Graph fused = FuseQuantized(net.graph);
    EXPECT_THAT(Types(fused), ElementsAre("Input", "QuantizeLinear", "ByteTable", "DequantizeLinear"));
    ExpectWithinAStep(net.graph, fused, 0.01f, 0.002);
  }
}

TEST(FuseQuantized, AConcatOfOtherScales) {
  QuantizedNet net;
  const auto x = net.Stored(net.Input({1, 5, 3, 7}));
  const auto y = net.Stored(net.Conv(x, 3, 1), {DataType::kU8, 0, {0.05f}, {7}});
  const auto both = net.graph.Add("both", std::make_shared<ConcatOp>(1), {x, y});
  net.graph.MarkOutput(net.Stored(both, {DataType::kU8, 0, {0.05f}, {7}}));
  const Graph fused = FuseQuantized(net.graph);
  EXPECT_THAT(Types(fused), ElementsAre("Input", "QuantizeLinear", "QuantizedConv", "ByteTable", "Concat",
                                        "DequantizeLinear"));
  ExpectWithinAStep(net.graph, fused, 0.05f, 0.02);
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
        const auto any = [&] { return AnyQuantization(type, random); };
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

TEST(QuantizedAveragePool, KernelsDoWhatTheReferenceDoes) {
  uint64_t seed = 3;
  for (const DataType type : {DataType::kU8, DataType::kI8}) {
    const StoredRange range = RangeOf(type);
    for (const PoolWindow& window : {PoolWindow{PoolKind::kAverage, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
                                     PoolWindow{PoolKind::kAverage, 2, 5, 1, 3, 2, 1, 0, 2, 1, 0, true},
                                     PoolWindow{PoolKind::kAverage, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, true, true},
                                     PoolWindow{PoolKind::kAverage, 5, 5}}) {
      for (const Shape& shape : {Shape{2, 9, 7, 5}, Shape{1, 40, 8, 9}, Shape{3, 1, 5, 11}}) {
        TestRandom random(++seed);
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        const auto any = [&] { return AnyQuantization(type, random); };
        CheckTypedKernel(QuantizedAveragePoolOp({window, any(), any(), range}),
                         {AnyStored(shape, type, seed)});
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Windows of more taps than are summed in 16 bits, and of rows longer than that.
TEST(QuantizedAveragePool, SumsOfManyBytesDoNotOverflow) {
  for (const DataType type : {DataType::kU8, DataType::kI8}) {
    const StoredRange range = RangeOf(type);
    const Quantization q{type, 0, {0.5f}, {type == DataType::kU8 ? 0 : -128}};
    for (const Shape& shape : {Shape{1, 40, 13, 19}, Shape{1, 21, 2, 300}, Shape{1, 3, 128, 1}}) {
      const PoolWindow window{.kind = PoolKind::kAverage, .kh = shape[2], .kw = shape[3]};
      Tensor largest(shape, Layout::Nchw(type));
      std::fill_n(largest.raw(), largest.size(), std::byte(range.high));
      const QuantizedAveragePoolOp pool({window, q, q, range});
      CheckTypedKernel(pool, {largest});
      CheckTypedKernel(pool, {AnyStored(shape, type, 5)});
      if (HasFatalFailure()) return;
    }
  }
}

TEST(QuantizedScaleShift, KernelsDoWhatTheReferenceDoes) {
  uint64_t seed = 3;
  for (const DataType type : {DataType::kU8, DataType::kI8}) {
    const StoredRange range = RangeOf(type);
    for (const Shape& shape :
         {Shape{2, 9, 3, 5}, Shape{1, 64, 56, 56}, Shape{3, 37}, Shape{2, 5, 7}, Shape{1, 3, 2, 3, 4}}) {
      TestRandom random(++seed);
      SCOPED_TRACE(testing::Message() << "seed " << seed);
      const auto any = [&] { return AnyQuantization(type, random); };
      QuantizedScaleShiftParams params{{}, {}, any(), any(), range};
      for (int64_t c = 0; c < shape[1]; ++c) {
        params.scale.push_back(random.Uniform(-2, 2));
        params.shift.push_back(random.Uniform(-9, 9));
      }
      if (random.Integer(0, 1) == 1) params.limits.low = params.output.zero_points[0];
      CheckTypedKernel(QuantizedScaleShiftOp(params), {AnyStored(shape, type, seed)});
      params.input.reset();
      Tensor reals(shape);
      for (int64_t i = 0; i < reals.size(); ++i) reals.floats()[i] = random.Uniform(-150, 150);
      reals.floats()[0] = std::numeric_limits<float>::quiet_NaN();
      reals.floats()[1] = std::numeric_limits<float>::infinity();
      CheckTypedKernel(QuantizedScaleShiftOp(params), {reals});
      if (HasFatalFailure()) return;
    }
  }
}

// Multiples of a half, where a product that is not rounded before the sum, or another rounding of ties,
// shows; and factors so large that products are beyond floats.
TEST(QuantizedScaleShift, RoundsTiesToEvenAndSaturates) {
  const Shape shape = {1, 8, 64, 4};
  const Quantization q{DataType::kU8, 0, {0.1f}, {100}};
  for (const float scale : {0.5f, 0.3f, 2.5f, 3e38f, -3e38f}) {
    const QuantizedScaleShiftParams params{std::vector<float>(8, scale), std::vector<float>(8, 0.05f), q, q,
                                           RangeOf(DataType::kU8)};
    CheckTypedKernel(QuantizedScaleShiftOp(params), {AnyStored(shape, DataType::kU8, 1)});
  }
}

TEST(ByteTable, KernelsDoWhatTheReferenceDoes) {
  uint64_t seed = 3;
  for (const DataType type : {DataType::kU8, DataType::kI8}) {
    for (const Shape& shape : {Shape{2, 9, 3, 5}, Shape{1, 64, 56, 56}, Shape{37}, Shape{}}) {
      const Quantization from{type, 0, {0.03f}, {7}}, to{DataType::kU8, 0, {0.004f}, {1}};
      CheckTypedKernel(ByteTableOp({ActivationKind::kSigmoid}, from, to, {1, 250}),
                       {AnyStored(shape, type, ++seed)});
    }
  }
  // 1 / (1 + exp(-x)) of -1, 0 and 1 is 0.2689, 0.5 and 0.7311.
  const ByteTableOp table({ActivationKind::kSigmoid}, {DataType::kI8, 0, {0.5f}, {3}},
                          {DataType::kU8, 0, {0.01f}, {5}}, RangeOf(DataType::kU8));
  const Tensor x = Stored<int8_t>({3}, {1, 3, 5});
  const Tensor y = table.Reference({{&x}});
  EXPECT_THAT(std::vector<uint8_t>(y.data<uint8_t>(), y.data<uint8_t>() + 3), ElementsAre(32, 55, 78));
}

}  // namespace
}  // namespace tilesmith
