// What every op makes of a NaN (ops/base/activation.h), in its reference and in its kernels.
#include "ops/dense/matmul.h"
#include "ops/dense/softmax.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/functions.h"
#include "ops/pool/pool.h"
#include "ops/reduce/reduce.h"
#include "tests/ops/kernel_check.h"
#include "tests/ops/test_node.h"

namespace tilesmith {
namespace {

std::vector<float> Reference(const Op& op, const std::vector<Tensor>& inputs) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) pointers.push_back(&input);
  const Tensor result = op.Reference(pointers);
  return {result.floats(), result.floats() + result.size()};
}

void CheckWithNans(std::shared_ptr<const Op> op, std::vector<Shape> shapes, double tolerance) {
  Check({std::move(op), std::move(shapes), tolerance, false, 7});
}

TEST(Nan, KernelsDoWhatTheirReferenceDoes) {
  constexpr double kAny = 1e-5;
  for (const char* text : {"relu", "clip:-1:2.5", "clip:1:2", "leaky_relu:0.1", "hard_sigmoid:0.2:0.5",
                           "hard_swish", "sigmoid", "tanh", "silu"}) {
    const Activation activation = ParseActivation(text);
    for (const int64_t c : {1, 9, 16}) {
      CheckWithNans(std::make_shared<ActivationOp>(activation), {{2, c, 3, 5}}, kAny);
      CheckWithNans(std::make_shared<ScaleShiftOp>(std::vector<float>(c, 1.5F), std::vector<float>(c, 0.5F),
                                                   activation),
                    {{2, c, 3, 5}}, kAny);
    }
    CheckWithNans(std::make_shared<MatMulOp>(MatMulParams{.activation = activation}), {{3, 5}, {5, 19}},
                  kAny);
  }
  for (const int64_t c : {1, 9, 16}) {
    const Shape image = {2, c, 7, 9};
    CheckWithNans(std::make_shared<PReluOp>(std::vector<float>(c, 0.25F)), {image}, kAny);
    for (const BinaryKind kind : {BinaryKind::kAdd, BinaryKind::kSub, BinaryKind::kMul, BinaryKind::kDiv}) {
      CheckWithNans(std::make_shared<BinaryOp>(kind), {image, image}, 1e-3);
      CheckWithNans(std::make_shared<BinaryOp>(kind), {image, {2, c, 1, 1}}, 1e-3);
    }
    CheckWithNans(std::make_shared<SumOp>(), {image, image, image}, kAny);
    for (const PoolKind kind : {PoolKind::kMax, PoolKind::kAverage}) {
      for (const int64_t stride : {1, 2, 3})
        CheckWithNans(std::make_shared<PoolOp>(PoolWindow{kind, 3, 3, stride, stride, 1, 1, 1, 1, 1, 1}),
                      {image}, kAny);
      CheckWithNans(std::make_shared<GlobalPoolOp>(kind), {image}, kAny);
    }
    CheckWithNans(std::make_shared<SoftmaxOp>(1, 3), {image}, kAny);
  }
}

// Infinities, the largest numbers and zeros of either sign through slopes of any kind, 0 * inf included.
TEST(Nan, InfinitiesThroughSlopes) {
  const std::vector<float> values = {kInf, -kInf, 3e38F, -3e38F, 0, -0.0F, 1, -2.5F, 5e30F, -5e30F};
  const std::vector<float> slopes = {0.25F, -0.5F, 3, 0, 1};
  for (const int64_t c : {1, 5, 16, 33}) {
    const Shape image = {2, c, 3, 11};
    Tensor x(image), slope({1, c, 1, 1});
    for (int64_t i = 0; i < x.size(); ++i) x.floats()[i] = values[i * 7 % std::ssize(values)];
    for (int64_t i = 0; i < c; ++i) slope.floats()[i] = slopes[i % std::ssize(slopes)];
    CheckOn({std::make_shared<PReluOp>(F(slope)), {image}}, {x});
    CheckOn({std::make_shared<BinaryOp>(BinaryKind::kPRelu), {image, slope.shape()}}, {x, slope});
    for (const float alpha : slopes) {
      const Activation leaky{ActivationKind::kLeakyRelu, alpha, 0};
      CheckOn({std::make_shared<ActivationOp>(leaky), {image}}, {x});
      CheckOn({std::make_shared<ScaleShiftOp>(std::vector<float>(c, 1), std::vector<float>(c, 0), leaky),
               {image}},
              {x});
    }
  }
}

TEST(Nan, LargestAndSmallestPassOverIt) {
  const Shape image = {1, 1, 1, 3};
  const PoolOp max_pool(PoolWindow{PoolKind::kMax, 1, 3, 1, 1, 1, 1, 0, 0, 0, 0});
  const GlobalPoolOp global(PoolKind::kMax);
  const ReduceOp reduce_max(ReduceKind::kMax, {3}, true), reduce_min(ReduceKind::kMin, {3}, true);
  for (const std::vector<float>& values :
       {std::vector<float>{kNan, -2, -1}, {-2, kNan, -1}, {-1, -2, kNan}}) {
    const std::vector<Tensor> inputs = {Floats(image, values)};
    EXPECT_EQ(Reference(max_pool, inputs)[0], -1);
    EXPECT_EQ(Reference(global, inputs)[0], -1);
    EXPECT_EQ(Reference(reduce_max, inputs)[0], -1);
    EXPECT_EQ(Reference(reduce_min, inputs)[0], -2);
  }
  const std::vector<Tensor> nothing = {Floats(image, {kNan, kNan, kNan})};
  EXPECT_EQ(Reference(max_pool, nothing)[0], -kInf);
  EXPECT_EQ(Reference(global, nothing)[0], -kInf);
  EXPECT_EQ(Reference(reduce_min, nothing)[0], kInf);
}

TEST(Nan, SumsMeansAndSoftmaxKeepIt) {
  const Shape image = {1, 1, 1, 3};
  const std::vector<Tensor> inputs = {Floats(image, {1, kNan, 2})};
  EXPECT_TRUE(std::isnan(Reference(GlobalPoolOp(PoolKind::kAverage), inputs)[0]));
  EXPECT_TRUE(std::isnan(Reference(ReduceOp(ReduceKind::kMean, {3}, true), inputs)[0]));
  EXPECT_TRUE(std::isnan(Reference(ReduceOp(ReduceKind::kSum, {3}, true), inputs)[0]));
  for (const float value : Reference(SoftmaxOp(3, 3), inputs)) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace tilesmith
