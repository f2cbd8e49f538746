// Softmax, reductions and normalizations over any axes, against the reference.
#include <gmock/gmock.h>

#include "ops/dense/softmax.h"
#include "ops/pool/pool.h"
#include "ops/reduce/normalization.h"
#include "ops/reduce/reduce.h"
#include "tests/ops/kernel_check.h"
#include "tests/ops/test_node.h"

namespace tilesmith {
namespace {

constexpr ReduceKind kKinds[] = {
    ReduceKind::kMean, ReduceKind::kSum, ReduceKind::kMax,       ReduceKind::kMin,    ReduceKind::kProduct,
    ReduceKind::kL1,   ReduceKind::kL2,  ReduceKind::kSumSquare, ReduceKind::kLogSum, ReduceKind::kLogSumExp};

// For n elements within [-4, 4]: sums to n * 4, squares to n * 16, products to 4^n.
double ToleranceOf(ReduceKind kind, int64_t count) {
  const auto n = static_cast<double>(std::max<int64_t>(count, 1));
  if (kind == ReduceKind::kProduct) return 4 * n * kUlp * std::pow(4.0, n);
  if (kind == ReduceKind::kLogSum) return 1e-2;  // sums next to 0
  return kind == ReduceKind::kMax || kind == ReduceKind::kMin ? 0
                                                              : 16 * (4 + std::sqrt(n)) * kUlp * std::sqrt(n);
}

int64_t ReducedCount(const Shape& shape, const std::vector<int64_t>& axes) {
  int64_t count = 1;
  for (const int64_t axis : axes) count *= shape[axis];
  return count;
}

TEST(ReduceKernels, EveryKindAndPlaceOfTheAxes) {
  const Shape shape = {2, 3, 5, 9};
  for (const ReduceKind kind : kKinds) {
    for (int mask = 1; mask < 16; ++mask) {
      std::vector<int64_t> axes;
      for (int64_t axis = 0; axis < 4; ++axis)
        if (mask >> axis & 1) axes.push_back(axis);
      const int64_t count = ReducedCount(shape, axes);
      if (kind == ReduceKind::kProduct && count > 30) continue;
      for (const bool keep : {true, false}) {
        Check({std::make_shared<ReduceOp>(kind, axes, keep), {shape}, ToleranceOf(kind, count)});
      }
    }
  }
}

TEST(ReduceKernels, RandomShapes) {
  constexpr int64_t kSizes[] = {0, 1, 2, 3, 7, 8, 9, 16, 17, 33};
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestRandom random(seed);
    Shape shape(random.Integer(1, 8));
    int64_t elements = 1;
    for (int64_t& size : shape) {
      size = elements > 3000 ? 1 : random.Pick(std::span(kSizes));
      elements *= std::max<int64_t>(size, 1);
    }
    std::vector<int64_t> axes;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (random.Integer(0, 1) == 1) axes.push_back(static_cast<int64_t>(axis));
    ReduceKind kind = random.Pick(std::span(kKinds));
    const int64_t count = ReducedCount(shape, axes);
    if (kind == ReduceKind::kProduct && count > 30) kind = ReduceKind::kSum;
    if (kind == ReduceKind::kLogSum) kind = ReduceKind::kL1;
    const auto op = std::make_shared<ReduceOp>(kind, axes, random.Integer(0, 1) == 1);
    Check({op, {shape}, ToleranceOf(kind, count), false, random.Integer(0, 3) == 0 ? 7 : 0});
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(ReduceKernels, LargeOnes) {
  for (const ReduceKind kind : {ReduceKind::kSum, ReduceKind::kMax, ReduceKind::kLogSumExp}) {
    for (const std::vector<int64_t>& axes : {std::vector<int64_t>{0}, {1}, {2}, {0, 2}}) {
      const Shape shape = {3, 301, 523};
      Check({std::make_shared<ReduceOp>(kind, axes, true),
             {shape},
             ToleranceOf(kind, ReducedCount(shape, axes))});
    }
  }
  Check(
      {std::make_shared<ReduceOp>(ReduceKind::kSum, std::vector<int64_t>{1}, false), {{1, 20011}}, 0, true});
}

TEST(ReduceKernels, LogSumExpDoesNotOverflow) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor x = Floats({4, 2}, {1000, 1000, -1000, -1000, -inf, -inf, inf, 0});
  for (const int64_t axis : {0, 1}) {
    const ReduceOp op(ReduceKind::kLogSumExp, {axis}, false);
    const Tensor* inputs[] = {&x};
    const Tensor want = op.Reference(inputs);
    Tensor got(want.shape());
    const InputView view = x.input_view();
    RunInShares(*op.MakeKernel({{x.shape()}, want.shape(), Layout::Nchw(), TestCpu()}),
                {{&view, 1}, got.output_view(), nullptr});
    for (int64_t i = 0; i < want.size(); ++i) {
      if (want.floats()[i] == got.floats()[i]) continue;
      EXPECT_NEAR(want.floats()[i], got.floats()[i], 1e-3) << "axis " << axis << " at " << i;
    }
  }
}

TEST(ReduceKernels, SoftmaxOverEveryAxis) {
  for (const bool logarithm : {false, true}) {
    const double tolerance = logarithm ? 64 * kUlp : 16 * kUlp;
    for (const Shape& shape : {Shape{3, 5, 7, 9}, Shape{1, 16, 4, 33}, Shape{2, 1, 8, 1}, Shape{2, 3, 1, 300},
                               Shape{5}, Shape{4, 17}, Shape{2, 3, 2, 1, 2, 3, 2, 4}, Shape{2, 0, 3}}) {
      for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis) {
        const auto op = std::make_shared<SoftmaxOp>(axis, axis, logarithm);
        if (ElementCount(shape) > 0 || shape[axis] > 0) Check({op, {shape}, tolerance});
        if (axis == 0)
          Check({std::make_shared<SoftmaxOp>(0, shape.size() - 1, logarithm), {shape}, tolerance});
      }
      if (ElementCount(shape) > 0) {
        Check({std::make_shared<SoftmaxOp>(shape.size() - 1, shape.size() - 1, logarithm),
               {shape},
               tolerance,
               false,
               11});
        Check({std::make_shared<SoftmaxOp>(0, 0, logarithm), {shape}, tolerance, false, 11});
      }
    }
  }
  Check({std::make_shared<SoftmaxOp>(1, 1), {{1, 16, 4, 2100}}, 16 * kUlp});
}

Tensor RandomScale(const Shape& shape, uint64_t seed) {
  Tensor tensor(shape);
  FillUniform({tensor.floats(), static_cast<size_t>(tensor.size())}, seed, 0.5f, 2.0f);
  return tensor;
}

OpPtr Node(const std::string& type, const Shape& shape, const std::vector<Shape>& parameters,
           const std::vector<std::pair<std::string, Attribute>>& attributes, int64_t opset = 21) {
  TestNode node(type, opset);
  node.Input(Tensor(shape));
  uint64_t seed = 1;
  for (const Shape& parameter : parameters) node.Const(RandomScale(parameter, seed++));
  for (const auto& [name, value] : attributes) node.Attr(name, value);
  return node.Build().op;
}

TEST(ReduceKernels, Normalizations) {
  constexpr double kTolerance = 64 * kUlp;
  for (const Shape& shape : {Shape{2, 3, 5, 16}, Shape{3, 7, 9}, Shape{2, 197}, Shape{1, 2, 3, 4, 5, 6},
                             Shape{1, 12, 64, 65}, Shape{2, 0, 4}}) {
    const auto rank = static_cast<int64_t>(shape.size());
    for (int64_t axis = -1; axis >= -rank; --axis) {
      const Shape together(shape.end() + axis, shape.end());
      const std::vector<std::pair<std::string, Attribute>> attributes = {{"axis", axis}, {"epsilon", 1e-3f}};
      Check({Node("LayerNormalization", shape, {together, together}, attributes), {shape}, kTolerance});
      Check({Node("LayerNormalization", shape, {together}, attributes), {shape}, kTolerance});
      Check({Node("RMSNormalization", shape, {{shape.back()}}, attributes), {shape}, kTolerance});
      Check({Node("LpNormalization", shape, {}, {{"axis", axis}}), {shape}, kTolerance});
      Check({Node("LpNormalization", shape, {}, {{"axis", axis}, {"p", int64_t{1}}}), {shape}, kTolerance});
    }
  }
  for (const Shape& shape :
       {Shape{2, 6, 5, 7}, Shape{1, 12, 64, 65}, Shape{3, 6, 9}, Shape{2, 6}, Shape{2, 6, 2, 3, 4}}) {
    const int64_t c = shape[1];
    if (shape.size() > 2)
      Check({Node("InstanceNormalization", shape, {{c}, {c}}, {}), {shape}, 4 * kTolerance});
    for (const int64_t groups : {int64_t{1}, int64_t{3}, c}) {
      if (groups == c && shape.size() == 2) continue;  // each element less itself
      Check({Node("GroupNormalization", shape, {{c}, {c}}, {{"num_groups", groups}}), {shape}, kTolerance});
      Check({Node("GroupNormalization", shape, {{groups}, {groups}}, {{"num_groups", groups}}, 18),
             {shape},
             kTolerance});
    }
  }
  Check({Node("MeanVarianceNormalization", {2, 3, 4, 5}, {}, {}), {{2, 3, 4, 5}}, kTolerance});
  Check({Node("MeanVarianceNormalization", {2, 3, 4, 5}, {}, {{"axes", IntList{2, 3}}}),
         {{2, 3, 4, 5}},
         kTolerance});
}

// Every operator, with rows of one vector and less, of many, and in channels.
std::vector<std::pair<OpPtr, Shape>> EveryNormalization(float epsilon) {
  std::vector<std::pair<OpPtr, Shape>> ops;
  const Attribute e = epsilon;
  for (const Shape& shape : {Shape{3, 6, 5, 7}, Shape{1, 6, 64, 65}, Shape{2, 6, 301}}) {
    const int64_t c = shape[1], columns = shape.back();
    ops.emplace_back(Node("LayerNormalization", shape, {{columns}, {columns}}, {{"epsilon", e}}), shape);
    ops.emplace_back(Node("InstanceNormalization", shape, {{c}, {c}}, {{"epsilon", e}}), shape);
    ops.emplace_back(
        Node("GroupNormalization", shape, {{c}, {c}}, {{"epsilon", e}, {"num_groups", int64_t{2}}}), shape);
    ops.emplace_back(Node("MeanVarianceNormalization", shape, {}, {{"axes", IntList{1, 2}}}), shape);
    if (shape.size() == 4)
      ops.emplace_back(Node("MeanVarianceNormalization", shape, {}, {{"axes", IntList{2, 3}}}), shape);
  }
  return ops;
}

// What a result may be off: 1e-6 of the spread, which scales of at most 2 multiply, and the rounding of
// results below 8.
constexpr double kOfSpread = 2 * 1e-6 + 4 * kUlp;

TEST(ReduceKernels, AMeanFarFromZeroCostsNoDigits) {
  for (const float mean : {4096.0f, -1e5f}) {
    for (const auto& [op, shape] : EveryNormalization(1e-5f)) {
      Check({op, {shape}, kOfSpread, false, 0, mean - 1.75f, mean + 1.75f});
      if (HasFatalFailure()) return;
    }
  }
}

TEST(ReduceKernels, SquaresDoNotOverflow) {
  for (const auto& [op, shape] : EveryNormalization(1e-5f)) {
    Check({op, {shape}, kOfSpread, false, 0, -1e30f, 1e30f});
    Check({op, {shape}, kOfSpread, false, 0, 1e30f, 3e30f});
    if (HasFatalFailure()) return;
  }
  const Shape shape = {4, 77};
  for (const float size : {1e30f, 1e-25f}) {
    for (const int64_t p : {1, 2}) {
      Check({Node("LpNormalization", shape, {}, {{"p", p}}), {shape}, 8 * kUlp, false, 0, -size, size});
    }
    for (const std::vector<int64_t>& axes : {std::vector<int64_t>{0}, {1}, {0, 1}}) {
      // The relative error of a sum of squares, halved by the root; there are at most 4 * 77 below size^2.
      const double tolerance = 16 * kUlp * std::sqrt(4.0 * 77) * size;
      Check({std::make_shared<ReduceOp>(ReduceKind::kL2, axes, true),
             {shape},
             tolerance,
             false,
             0,
             -size,
             size});
    }
  }
  Check({Node("RMSNormalization", shape, {{77}}, {}), {shape}, kOfSpread, false, 0, -1e30f, 1e30f});
}

// Where squares are taken about an element first, that element is the one that is no measure of the others.
TEST(ReduceKernels, OutliersInTheMiddleOfARow) {
  const Shape shape = {1, 1000};
  const OpPtr op = Node("LayerNormalization", shape, {{1000}, {1000}}, {});
  for (const float outlier : {100.0f, -1e6f, 1e30f, kInf, kNan}) {
    Tensor x(shape);
    FillUniform({x.floats(), 1000}, 3, 50, 51);
    x.floats()[500] = outlier;
    // The outlier's own result is some sqrt(1000) * 2, where the last digit is 32 times that of 1.
    CheckOn({op, {shape}, 64 * kOfSpread}, {x});
  }
  const Tensor zeros(shape);
  CheckOn({op, {shape}, 0}, {zeros});
  Tensor same(shape);
  std::fill_n(same.floats(), 1000, 1234.0f);
  CheckOn({op, {shape}, kUlp}, {same});
  const auto lp = Node("LpNormalization", {2, 3}, {}, {});
  CheckOn({lp, {{2, 3}}, 0}, {Tensor({2, 3})});
}

// A mean is the reference's to some roundings of itself, however many numbers there are.
TEST(ReduceKernels, MeansOfManyNumbers) {
  const double tolerance = 4 * kUlp * 4097;
  for (const Shape& shape : {Shape{1, 3, 257, 512}, Shape{2, 17, 130, 7}}) {
    Check({std::make_shared<GlobalPoolOp>(PoolKind::kAverage), {shape}, tolerance, false, 0, 4096, 4097});
    for (const std::vector<int64_t>& axes : {std::vector<int64_t>{1}, {2, 3}, {0, 1, 2, 3}, {1, 2}, {3}}) {
      Check({std::make_shared<ReduceOp>(ReduceKind::kMean, axes, true),
             {shape},
             tolerance,
             false,
             0,
             4096,
             4097});
      if (HasFatalFailure()) return;
    }
  }
}

TEST(ReduceKernels, Refusals) {
  EXPECT_THAT(TestNode("GroupNormalization", 21)
                  .Input(Tensor({1, 5, 2}))
                  .Const(Tensor({5}))
                  .Const(Tensor({5}))
                  .Attr("num_groups", int64_t{2})
                  .Refusal(),
              testing::HasSubstr("num_groups is 2, which does not divide 5 channels"));
  EXPECT_THAT(TestNode("LayerNormalization", 17).Input(Tensor({1, 5})).Const(Tensor({4})).Refusal(),
              testing::HasSubstr("input 1 has shape 4, which does not fit 5"));
  EXPECT_THAT(TestNode("LpNormalization").Input(Tensor({1, 5})).Attr("p", int64_t{3}).Refusal(),
              testing::HasSubstr("p is 3, supported are 1 and 2"));
}

}  // namespace
}  // namespace tilesmith
