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
        for (const Shape& shape : {Shape{2, 9, 3, 5}, Shape{1, 16, 7, 3}, Shape{1, 9, 20, 26}, Shape{37},
                                   Shape{}, Shape{2, 3, 2, 2, 3}}) {
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

// Blocks along every axis, of which the last may be shorter: the same as one node for each block.
TEST(Quantize, BlocksHaveScalesOfTheirOwn) {
  const Shape shape = {5, 4, 3, 2};
  for (int64_t axis = 0; axis < 4; ++axis) {
    for (const int64_t block : {1, 2, 3, 7}) {
      for (const bool known : {true, false}) {
        SCOPED_TRACE(testing::Message() << "blocks of " << block << " along " << axis);
        Shape blocks = shape;
        blocks[axis] = CeilDiv(shape[axis], block);
        Tensor scales(blocks);
        FillUniform({scales.floats(), static_cast<size_t>(scales.size())}, 3, 0.5f, 2.0f);
        const Tensor zeros = AnyStored(blocks, DataType::kI8, 4), stored = AnyStored(shape, DataType::kI8, 5);
        TestNode node("DequantizeLinear", 21);
        node.Attr("axis", axis).Attr("block_size", block).Input(stored);
        known ? node.Const(scales).Const(zeros) : node.Input(scales).Input(zeros);
        const Tensor reals = node.Evaluate();
        TestNode again("QuantizeLinear", 21);
        again.Attr("axis", axis - 4).Attr("block_size", block).Input(reals);
        known ? again.Const(scales).Const(zeros) : again.Input(scales).Input(zeros);
        EXPECT_EQ(I(again.Evaluate()), I(stored));
        const std::vector<int64_t> strides = DenseStrides(shape), block_strides = DenseStrides(blocks);
        for (int64_t i = 0; i < reals.size(); ++i) {
          int64_t k = 0;
          for (int64_t a = 0; a < 4; ++a) {
            const int64_t index = i / strides[a] % shape[a];
            k += (a == axis ? index / block : index) * block_strides[a];
          }
          const int steps = stored.data<int8_t>()[i] - zeros.data<int8_t>()[k];
          ASSERT_EQ(reals.floats()[i], static_cast<float>(steps) * scales.floats()[k]) << "element " << i;
        }
      }
    }
  }
}

TEST(Quantize, NarrowIntegersSaturateAtTheirOwnEnds) {
  const Tensor x = Floats({6}, {-100, -2.5f, -0.6f, 1.5f, 7.4f, 100});
  const auto as = [&](int64_t number) {
    return I(TestNode("QuantizeLinear", 25)
                 .Attr("output_dtype", number)
                 .Input(x)
                 .Const(Floats({}, {1}))
                 .Evaluate());
  };
  EXPECT_THAT(as(22), ElementsAre(-8, -2, -1, 2, 7, 7));
  EXPECT_THAT(as(21), ElementsAre(0, 0, 0, 2, 7, 15));
  EXPECT_THAT(as(26), ElementsAre(-2, -2, -1, 1, 1, 1));
  EXPECT_THAT(as(25), ElementsAre(0, 0, 0, 2, 3, 3));
  // By the type that the zero point had in the file.
  TestNode node("QuantizeLinear", 21);
  node.Input(x).Const(Floats({}, {1})).Const(Stored<int8_t>({}, {2}));
  node.spec.inputs[2].narrow = 22;
  EXPECT_THAT(I(node.Evaluate()), ElementsAre(-8, 0, 1, 4, 7, 7));
}

// Rounded to 16 bits, quotients near 100 would be ties.
TEST(Quantize, QuotientsAreOfF32WhateverPrecisionIsEnough) {
  const Tensor x = Floats({3}, {100.49f, -100.51f, 3});
  const auto with = [&](int64_t precision) {
    return I(TestNode("QuantizeLinear", 23)
                 .Attr("precision", precision)
                 .Input(x)
                 .Const(Floats({1}, {1}))
                 .Const(Stored<int8_t>({1}, {0}))
                 .Evaluate());
  };
  for (const int64_t floats : {1, 10, 16}) EXPECT_THAT(with(floats), ElementsAre(100, -101, 3));
  EXPECT_THAT(TestNode("QuantizeLinear", 23)
                  .Attr("precision", int64_t{17})
                  .Input(x)
                  .Const(Floats({1}, {1}))
                  .Refusal(),
              HasSubstr("precision is FLOAT8E4M3FN"));
}

TEST(Quantize, NumbersWithExponentsAreConstants) {
  const Tensor x = Floats({2, 3}, {1, -2, 0.5f, 448, 0, -1.75f});
  EXPECT_THAT(F(TestNode("DequantizeLinear", 21)
                    .Attr("axis", int64_t{0})
                    .Const(x)
                    .Const(Floats({2}, {2, 3}))
                    .Evaluate()),
              ElementsAre(2, -4, 1, 1344, 0, -5.25f));
  EXPECT_THAT(F(TestNode("DequantizeLinear", 21)
                    .Attr("block_size", int64_t{2})
                    .Const(x)
                    .Const(Floats({2, 2}, {2, 3, 4, 5}))
                    .Const(Floats({2, 2}, {0, 0, 1, 1}))
                    .Evaluate()),
              ElementsAre(2, -4, 1.5f, 1788, -4, -13.75f));
  const Tensor half = TestNode("DequantizeLinear", 23)
                          .Attr("output_dtype", int64_t{10})
                          .Const(Stored<int8_t>({2}, {1, -3}))
                          .Const(Floats({}, {0.5f}))
                          .Evaluate();
  EXPECT_THAT(F(half), ElementsAre(0.5f, -1.5f));  // in the type that floats of 16 bits are computed in
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
  EXPECT_THAT(refusal(Counting({2, 3}), Stored<uint8_t>({2, 3}, {0, 0, 0, 0, 0, 0})),
              HasSubstr("no block_size"));
  EXPECT_THAT(refusal(Counting({3}), Stored<uint8_t>({3}, {0, 0, 0}), 2),
              HasSubstr("scales 3 do not fit 2x3 in blocks of 2 along axis 1"));
  EXPECT_THAT(refusal(Counting({2, 2}), Stored<uint8_t>({2}, {0, 0}), 2),
              HasSubstr("4 scales and 2 zero points"));
  EXPECT_THAT(refusal(Counting({2, 2}), Stored<uint8_t>({2}, {0, 0}), -2), HasSubstr("block_size is -2"));
  EXPECT_THAT(refusal(Counting({1}), Ints({1}, {0})), HasSubstr("INT64"));
  EXPECT_THAT(TestNode("QuantizeLinear").Attr("axis", int64_t{7}).Input(x).Const(Counting({3})).Refusal(),
              HasSubstr("axis 7"));
  EXPECT_THAT(
      TestNode("QuantizeLinear").Attr("output_dtype", int64_t{17}).Input(x).Const(Counting({1})).Refusal(),
      HasSubstr("FLOAT8E4M3FN are not quantized to"));
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
