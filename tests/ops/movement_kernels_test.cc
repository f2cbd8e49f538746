// Kernels that move elements: every permutation, slices, concatenations, expansions and gathers of random
// shapes, for elements of every size.
#include <algorithm>
#include <numeric>

#include "ops/movement/concat.h"
#include "ops/movement/indexing.h"
#include "ops/movement/transpose.h"
#include "ops/movement/view.h"
#include "tests/ops/kernel_check.h"
#include "tests/ops/typed_kernel_check.h"

namespace tilesmith {
namespace {

constexpr DataType kTypes[] = {DataType::kI8, DataType::kF16, DataType::kF32, DataType::kI64,
                               DataType::kBool};

Tensor RandomBytes(const Shape& shape, DataType type, TestRandom& random) {
  Tensor tensor(shape, Layout::Nchw(type));
  const int64_t bytes = tensor.size() * ElementBytes(type);
  for (int64_t i = 0; i < bytes; ++i) {
    tensor.raw()[i] =
        static_cast<std::byte>(type == DataType::kBool ? random.Integer(0, 1) : random.Integer(0, 255));
  }
  return tensor;
}

// The kernel against the reference, bit by bit, for each instruction set.
void CheckBytes(const Op& op, const std::vector<Tensor>& inputs) {
  std::vector<const Tensor*> pointers;
  std::vector<Shape> shapes;
  std::vector<DataType> types;
  std::vector<InputView> views;
  for (const Tensor& input : inputs) {
    pointers.push_back(&input);
    shapes.push_back(input.shape());
    types.push_back(input.type());
    views.push_back(input.input_view());
  }
  const Tensor want = op.Reference(pointers);
  ASSERT_TRUE(op.KernelTakes(types));
  for (const Isa isa : kIsas) {
    if (isa > TestCpu().isa) continue;
    Tensor got(want.shape(), want.layout());
    const int64_t bytes = got.size() * ElementBytes(got.type());
    std::fill_n(got.raw(), bytes, std::byte{0xa5});
    const auto kernel = op.MakeKernel({shapes, want.shape(), want.layout(), CapIsa(TestCpu(), isa), types});
    RunInShares(*kernel, {views, got.output_view(), nullptr});
    ASSERT_TRUE(std::equal(want.raw(), want.raw() + bytes, got.raw()))
        << op.Signature() << " of " << ShapeToString(shapes[0]) << " as " << DataTypeName(want.type())
        << " on " << IsaName(isa);
  }
}

Shape RandomShape(TestRandom& random, int64_t least_rank = 0) {
  constexpr int64_t kSizes[] = {0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 17, 33};
  Shape shape(random.Integer(least_rank, 8));
  int64_t elements = 1;
  for (int64_t& size : shape) {
    size = elements > 4000 ? 1 : random.Pick(std::span(kSizes));
    if (size == 0 && random.Integer(0, 3) > 0) size = 6;
    elements *= std::max<int64_t>(size, 1);
  }
  return shape;
}

TEST(MovementKernels, EveryPermutationOfRankFour) {
  std::vector<int64_t> perm = {0, 1, 2, 3};
  do {
    const auto op = std::make_shared<TransposeOp>(perm);
    Check({op, {{2, 3, 5, 7}}});
    Check({op, {{3, 1, 40, 9}}});
  } while (std::ranges::next_permutation(perm).found);
}

TEST(MovementKernels, TransposesOfRandomShapes) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestRandom random(seed);
    const Shape shape = RandomShape(random);
    std::vector<int64_t> perm(shape.size());
    std::iota(perm.begin(), perm.end(), 0);
    for (size_t i = perm.size(); i > 1; --i)
      std::swap(perm[i - 1], perm[random.Integer(0, static_cast<int64_t>(i) - 1)]);
    const auto op = std::make_shared<TransposeOp>(perm);
    CheckBytes(*op, {RandomBytes(shape, random.Pick(std::span(kTypes)), random)});
    Check({op, {shape}});
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(MovementKernels, LargeTransposes) {
  TestRandom random(1);
  for (const DataType type : kTypes) {
    CheckBytes(TransposeOp({1, 0}), {RandomBytes({331, 517}, type, random)});
    CheckBytes(TransposeOp({0, 2, 1}), {RandomBytes({3, 65, 400}, type, random)});
    CheckBytes(TransposeOp({0, 2, 1, 3}), {RandomBytes({1, 197, 3, 64}, type, random)});
    CheckBytes(TransposeOp({2, 0, 3, 1, 4}), {RandomBytes({1, 197, 3, 3, 64}, type, random)});
  }
}

TEST(MovementKernels, SlicesOfRandomShapes) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestRandom random(seed);
    const Shape shape = RandomShape(random, 1);
    std::vector<SliceRange> ranges;
    for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis) {
      if (random.Integer(0, 1) == 0) continue;
      constexpr int64_t kSteps[] = {1, 1, 2, 3, -1, -2, 100};
      ranges.push_back(
          {axis, random.Integer(-20, 20), random.Integer(-40, 40), random.Pick(std::span(kSteps))});
    }
    const auto op = std::make_shared<SliceOp>(ranges);
    CheckBytes(*op, {RandomBytes(shape, random.Pick(std::span(kTypes)), random)});
    Check({op, {shape}});
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(MovementKernels, ConcatsOfRandomShapes) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestRandom random(seed);
    const Shape shape = RandomShape(random, 1);
    const int64_t axis = random.Integer(0, static_cast<int64_t>(shape.size()) - 1);
    const DataType type = random.Pick(std::span(kTypes));
    std::vector<Shape> shapes;
    std::vector<Tensor> inputs;
    for (int64_t i = random.Integer(1, 4); i > 0; --i) {
      Shape& part = shapes.emplace_back(shape);
      part[axis] = random.Integer(0, 9);
      inputs.push_back(RandomBytes(part, type, random));
    }
    const auto op = std::make_shared<ConcatOp>(axis);
    CheckBytes(*op, inputs);
    Check({op, shapes});
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(MovementKernels, BytesInAnyLayout) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestRandom random(seed);
    const DataType type = random.Pick(std::vector<DataType>{DataType::kU8, DataType::kI8});
    const Shape shape = {random.Integer(1, 2), random.Integer(1, 70), random.Integer(1, 6),
                         random.Integer(1, 9)};
    std::vector<Tensor> inputs;
    for (int64_t i = random.Integer(1, 4); i > 0; --i) {
      Shape part = shape;
      part[1] = random.Pick(std::vector<int64_t>{1, 2, 3, 4, 7, 8, 16, 21, 32, 64, 130});
      inputs.push_back(RandomBytes(part, type, random));
    }
    CheckTypedKernel(ConcatOp(1), inputs);
    std::vector<SliceRange> ranges;
    for (int64_t axis = 0; axis < 4; ++axis) {
      const int64_t start = random.Integer(0, shape[axis] - 1),
                    step = random.Pick(std::vector<int64_t>{1, 1, 2, -1});
      ranges.push_back({axis, start, step < 0 ? -shape[axis] - 1 : shape[axis], step});
    }
    CheckTypedKernel(SliceOp(ranges), {RandomBytes(shape, type, random)});
    if (testing::Test::HasFailure()) return;
  }
}

TEST(MovementKernels, ExpandsOfRandomShapes) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestRandom random(seed);
    const Shape target = RandomShape(random);
    Shape shape = target;
    for (int64_t& size : shape) size = random.Integer(0, 1) == 0 ? 1 : size;
    if (random.Integer(0, 1) == 0)
      shape.erase(shape.begin(), shape.begin() + random.Integer(0, static_cast<int64_t>(shape.size())));
    const auto op = std::make_shared<ExpandOp>(target);
    CheckBytes(*op, {RandomBytes(shape, random.Pick(std::span(kTypes)), random)});
    Check({op, {shape}});
    if (testing::Test::HasFatalFailure()) return;
  }
}

Tensor RandomIndices(const Shape& shape, int64_t size, TestRandom& random) {
  const bool narrow = random.Integer(0, 1) == 0;
  Tensor tensor(shape, Layout::Nchw(narrow ? DataType::kI32 : DataType::kI64));
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const int64_t index = random.Integer(-size, size - 1);
    if (narrow) {
      tensor.data<int32_t>()[i] = static_cast<int32_t>(index);
    } else {
      tensor.ints()[i] = index;
    }
  }
  return tensor;
}

TEST(MovementKernels, GathersOfRandomShapes) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestRandom random(seed);
    Shape shape = RandomShape(random, 1);
    if (shape.size() > 5) shape.resize(5);
    const int64_t axis = random.Integer(0, static_cast<int64_t>(shape.size()) - 1);
    if (shape[axis] == 0) shape[axis] = 3;
    Shape index_shape(random.Integer(0, 3));
    for (int64_t& size : index_shape) size = random.Integer(0, 5);
    std::vector<Tensor> inputs;
    inputs.push_back(RandomBytes(shape, random.Pick(std::span(kTypes)), random));
    inputs.push_back(RandomIndices(index_shape, shape[axis], random));
    CheckBytes(GatherOp(axis), inputs);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(MovementKernels, GatherOutsideIsAnError) {
  Tensor data({4}), indices({2}, Layout::Nchw(DataType::kI64)), out({2});
  std::iota(data.floats(), data.floats() + 4, 1.0f);
  const InputView views[] = {data.input_view(), indices.input_view()};
  const auto kernel =
      GatherOp(0).MakeKernel({{{4}, {2}}, {2}, Layout::Nchw(), TestCpu(), {DataType::kF32, DataType::kI64}});
  const auto run = [&] { kernel->Run({views, out.output_view(), nullptr}, 0, {0, kernel->Tasks(0), 0}); };
  for (const int64_t index : {int64_t{-5}, int64_t{4}, std::numeric_limits<int64_t>::min()}) {
    indices.ints()[1] = index;
    EXPECT_THROW(run(), Error) << index;
  }
  indices.ints()[0] = -4, indices.ints()[1] = -1;
  run();
  EXPECT_EQ(out.floats()[0], 1);
  EXPECT_EQ(out.floats()[1], 4);
}

TEST(MovementKernels, ViewsOfEverySize) {
  TestRandom random(3);
  for (const DataType type : kTypes) {
    CheckBytes(ViewOp("Reshape", Shape{3, -1}), {RandomBytes({2, 6, 50, 70}, type, random)});
    CheckBytes(ViewOp("Identity"), {RandomBytes({}, type, random)});
  }
}

}  // namespace
}  // namespace tilesmith
