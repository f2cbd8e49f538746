// Kernels of comparisons, logic and Where against their references, bit for bit.
#include <gtest/gtest.h>

#include "ops/elementwise/logic.h"
#include "tests/ops/typed_kernel_check.h"

namespace tilesmith {
namespace {

// Few different values, so that they are often equal; floats are at times NaN or infinite.
Tensor FewValues(const Shape& shape, DataType type, TestRandom& random) {
  Tensor tensor(shape, Layout::Nchw(type));
  VisitType(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor.data<T>()[i] =
          static_cast<T>(static_cast<float>(random.Integer(type == DataType::kBool ? 0 : -2, 1)));
  });
  if (type != DataType::kF32) return tensor;
  const std::vector special = {std::numeric_limits<float>::quiet_NaN(),
                               std::numeric_limits<float>::infinity(),
                               -std::numeric_limits<float>::infinity()};
  for (int64_t i = 0; i < tensor.size(); i += random.Integer(1, 9)) tensor.floats()[i] = random.Pick(special);
  return tensor;
}

// One that broadcasts to `shape`.
Shape Broadcasting(Shape shape, TestRandom& random) {
  for (int64_t& size : shape) {
    if (random.Integer(0, 2) == 0) size = 1;
  }
  const int64_t cut = random.Integer(0, std::ssize(shape));
  if (random.Integer(0, 3) == 0) shape.erase(shape.begin(), shape.begin() + cut);
  return shape;
}

Shape AnyShape(TestRandom& random) {
  if (random.Integer(0, 9) == 0) return {2, 5, random.Integer(1600, 1700)};  // several tasks
  Shape shape;
  for (int64_t rank = random.Integer(0, 5); rank > 0; --rank) shape.push_back(random.Integer(1, 6));
  return shape;
}

TEST(LogicKernels, PairsOfRandomShapes) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    const auto kind = random.Pick(
        std::vector<PairKind>{PairKind::kEqual, PairKind::kGreater, PairKind::kGreaterOrEqual,
                              PairKind::kLess, PairKind::kLessOrEqual, PairKind::kAnd, PairKind::kOr,
                              PairKind::kXor, PairKind::kBitAnd, PairKind::kShiftLeft});
    const bool logic = kind >= PairKind::kAnd && kind <= PairKind::kXor;
    const DataType type = logic ? DataType::kBool
                          : kind > PairKind::kXor
                              ? random.Pick(std::vector{DataType::kI32, DataType::kU8})
                              : random.Pick(std::vector{DataType::kF32, DataType::kI32, DataType::kU8});
    const Shape shape = AnyShape(random), other = Broadcasting(shape, random);
    const bool turned = random.Integer(0, 1) == 1;
    CheckTypedKernel(PairOp(kind), {FewValues(turned ? other : shape, type, random),
                                    FewValues(turned ? shape : other, type, random)});
    if (HasFatalFailure()) return;
  }
}

TEST(LogicKernels, TestsAndChoicesOfRandomShapes) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    const Shape shape = AnyShape(random);
    CheckTypedKernel(TestOp(TestKind::kIsInfinite, {random.Integer(0, 1) == 1, true}),
                     {FewValues(shape, DataType::kF32, random)});
    CheckTypedKernel(TestOp(TestKind::kNot), {FewValues(shape, DataType::kBool, random)});
    const DataType type = random.Pick(std::vector{DataType::kF32, DataType::kI32, DataType::kBool});
    CheckTypedKernel(WhereOp(),
                     {FewValues(Broadcasting(shape, random), DataType::kBool, random),
                      FewValues(shape, type, random), FewValues(Broadcasting(shape, random), type, random)});
    if (HasFatalFailure()) return;
  }
}

TEST(LogicKernels, IntegersAreDividedByTheReference) {
  const DataType types[] = {DataType::kI32, DataType::kI32};
  EXPECT_FALSE(PairOp(PairKind::kMod).KernelTakes(types));
}

}  // namespace
}  // namespace tilesmith
