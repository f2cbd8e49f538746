// Quantisation: what integers stand for, kernels against it in every layout, importing, refusals.
#include "ops/quantize/quantize.h"

#include <gmock/gmock.h>

#include "tests/ops/test_node.h"
#include "tests/ops/typed_kernel_check.h"

namespace tilesmith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Reals that hit the ends of the range, halves between steps, and what is no number.
Tensor Reals(const Shape& shape, const Quantization& q, uint64_t seed) {
  Tensor tensor(shape);
  TestRandom random(seed);
  const StoredRange range = RangeOf(q.type);
  const float scale = q.scales[0];
  for (float& value : std::span(tensor.floats(), static_cast<size_t>(tensor.size()))) {
    const auto step = static_cast<float>(random.Integer(2 * range.low - 300, 2 * range.high + 300));
    value = step * 0.5f * scale;
    if (random.Integer(0, 3) == 0) value *= random.Uniform(-1, 1);
    if (random.Integer(0, 40) == 0) value = random.Pick(std::vector<float>{kNan, kInf, -kInf, 3e38f, -0.0f});
  }
  return tensor;
}

TEST(Quantize, KernelsDoWhatTheReferenceDoes) {
  uint64_t seed = 11;
  for (const DataType type : {DataType::kU8, DataType::kI8, DataType::kU16, DataType::kI16}) {
    for (const float scale : {1e-8f, 0.0235f, 1.0f, 1e8f}) {
      for (const int32_t zero : {0, 1, 127, 128, 255}) {
        if (zero > RangeOf(type).high) continue;
        const Quantization q{type, 0, {scale}, {zero}};
        for (const Shape& shape :
             {Shape{2, 9, 3, 5}, Shape{1, 16, 7, 3}, Shape{37}, Shape{}, Shape{2, 3, 2, 2, 3}}) {
          SCOPED_TRACE(testing::Message() << "seed " << ++seed << " scale " << scale << " zero " << zero);
          CheckTypedKernel(QuantizeLinearOp(q), {Reals(shape, q, seed)});
          CheckTypedKernel(DequantizeLinearOp(q), {AnyStored(shape, type, seed)});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Quantize, EachIndexOfAnAxisHasItsScale) {
  uint64_t seed = 5;
  for (const Shape& shape : {Shape{3, 9, 2, 5}, Shape{1, 17, 70, 130}, Shape{7, 3}, Shape{40000, 2}}) {
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      for (const DataType type : {DataType::kU8, DataType::kI8}) {
        Quantization q{type, static_cast<int64_t>(axis), {}, {}};
        TestRandom random(++seed);
        for (int64_t i = 0; i < shape[axis]; ++i) {
          q.scales.push_back(random.Uniform(0.01f, 4.0f));
          q.zero_points.push_back(
              static_cast<int32_t>(random.Integer(RangeOf(type).low, RangeOf(type).high)));
        }
        if (q.per_tensor()) continue;
        SCOPED_TRACE(testing::Message() << "seed " << seed << " axis " << axis);
        CheckTypedKernel(QuantizeLinearOp(q), {Reals(shape, q, seed)});
        CheckTypedKernel(DequantizeLinearOp(q), {AnyStored(shape, type, seed)});
        if (HasFatalFailure()) return;
      }
    }
  }
  const Quantization bias{DataType::kI32, 0, {0.5f, 1e-8f}, {0, 0}};
  CheckTypedKernel(DequantizeLinearOp(bias), {AnyStored({2}, DataType::kI32, 3)});
}

TEST(Quantize, TiesGoToEvenAndTheEndsSaturate) {
  const Tensor x = Floats({9}, {0.5f, 1.5f, -0.5f, -1.5f, 254.5f, 1e30f, -1e30f, kNan, 2.5f});
  const auto node = [&](Tensor zero) {
    return I(TestNode("QuantizeLinear").Input(x).Const(Floats({}, {1})).Const(std::move(zero)).Evaluate());
  };
  EXPECT_THAT(node(Stored<uint8_t>({}, {0})), ElementsAre(0, 2, 0, 0, 254, 255, 0, 0, 2));
  EXPECT_THAT(node(Stored<uint8_t>({}, {1})), ElementsAre(1, 3, 1, 0, 255, 255, 0, 0, 3));
  EXPECT_THAT(node(Stored<int8_t>({}, {-1})), ElementsAre(-1, 1, -1, -3, 127, 127, -128, -128, 1));
  EXPECT_THAT(F(TestNode("DequantizeLinear")
                    .Input(Stored<int8_t>({3}, {-128, 0, 127}))
                    .Const(Floats({}, {0.5f}))
                    .Const(Stored<int8_t>({}, {127}))
                    .Evaluate()),
              ElementsAre(-127.5f, -63.5f, 0));
}

TEST(Quantize, ScalesKnownInARunOnly) {
  TestNode node("QuantizeLinear");
  node.Input(Floats({2, 2}, {1, 2, 3, 4})).Input(Floats({2}, {1, 2})).Input(Stored<int8_t>({2}, {1, 2}));
  EXPECT_THAT(I(node.Evaluate()), ElementsAre(2, 3, 4, 4));
  TestNode back("DequantizeLinear");
  back.Attr("axis", int64_t{-2}).Input(Stored<uint8_t>({2, 2}, {1, 2, 3, 4})).Input(Floats({2}, {1, 2}));
  EXPECT_THAT(F(back.Evaluate()), ElementsAre(1, 2, 6, 8));
}

TEST(Quantize, WhatDoesNotFitIsRefused) {
  const Tensor x = Counting({2, 3});
  const auto refusal = [&](Tensor scale, Tensor zero, int64_t block = 0) {
    TestNode node("QuantizeLinear", 21);
    if (block != 0) node.Attr("block_size", block);
    return node.Input(x).Const(std::move(scale)).Const(std::move(zero)).Refusal();
  };
  EXPECT_THAT(refusal(Counting({2}), Stored<uint8_t>({2}, {0, 0})), HasSubstr("do not fit the shape 2x3"));
  EXPECT_THAT(refusal(Counting({3}), Stored<uint8_t>({1}, {0})), HasSubstr("3 scales and 1 zero points"));
  EXPECT_THAT(refusal(Counting({2, 3}), Stored<uint8_t>({2, 3}, {0, 0, 0, 0, 0, 0})), HasSubstr("blocked"));
  EXPECT_THAT(refusal(Counting({3}), Stored<uint8_t>({3}, {0, 0, 0}), 2), HasSubstr("blocked"));
  EXPECT_THAT(refusal(Counting({1}), Ints({1}, {0})), HasSubstr("i64"));
  EXPECT_THAT(TestNode("QuantizeLinear").Attr("axis", int64_t{7}).Input(x).Const(Counting({3})).Refusal(),
              HasSubstr("axis 7"));
  EXPECT_THAT(
      TestNode("QuantizeLinear").Attr("output_dtype", int64_t{22}).Input(x).Const(Counting({1})).Refusal(),
      HasSubstr("output_dtype 22"));
  EXPECT_THAT(TestNode("DequantizeLinear").Input(x).Const(Counting({1})).Refusal(), HasSubstr("f32"));
  EXPECT_THAT(TestNode("DequantizeLinear")
                  .Input(Stored<int32_t>({1}, {5}))
                  .Const(Counting({1}))
                  .Const(Stored<int32_t>({1}, {1}))
                  .Refusal(),
              HasSubstr("zero point"));
}

}  // namespace
}  // namespace tilesmith
