// Kernels of tensors that are stored in bf16, against the reference of the same numbers in f32, rounded once:
// in every layout, for each instruction set, with images spread apart, between guard pages, from outputs full
// of NaN, and in place.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>

#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/functions.h"
#include "ops/pool/pool.h"
#include "ops/resize/resize.h"
#include "tests/ops/typed_kernel_check.h"

namespace tilesmith::bf16_kernels {
namespace {

// How far a result may be from the one that is rounded once: steps of bf16, or less than `slack`, which is
// what AVX-512 BF16 takes for zero.
struct Allowed {
  int steps = 0;
  double slack = 0x1p-126;
};

int64_t Place(uint16_t bits) { return bits & 0x8000 ? -int64_t{bits & 0x7fff} : int64_t{bits}; }

bool IsClose(Bf16 got, Bf16 want, const Allowed& allowed) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isnan(got)) return false;
  return std::abs(Place(got.bits) - Place(want.bits)) <= allowed.steps ||
         std::abs(double{got} - double{want}) <= allowed.slack;
}

Tensor InF32(const Tensor& stored) {
  Tensor floats(stored.shape());
  for (int64_t i = 0; i < stored.size(); ++i) floats.floats()[i] = stored.data<Bf16>()[i];
  return floats;
}

Tensor InBf16(const Tensor& floats) {
  Tensor stored(floats.shape(), Layout::Nchw(DataType::kBf16));
  for (int64_t i = 0; i < stored.size(); ++i) stored.data<Bf16>()[i] = Bf16(floats.floats()[i]);
  return stored;
}

// Every element close, padding zero, gaps as they were.
void ExpectClose(SpreadTensor& out, const Tensor& want, const Allowed& allowed) {
  Tensor got = want;
  std::vector<bool> holds_element(out.size_bytes());
  for (int64_t i = 0; i < got.size(); ++i) {
    std::memcpy(&got.data<Bf16>()[i], out.bytes() + out.Offset(i), sizeof(Bf16));
    holds_element[out.Offset(i)] = true;
    ASSERT_TRUE(IsClose(got.data<Bf16>()[i], want.data<Bf16>()[i], allowed))
        << "element " << i << " is " << got.data<Bf16>()[i] << ", should be " << want.data<Bf16>()[i];
  }
  const auto nan = std::bit_cast<std::array<uint16_t, 2>>(std::numeric_limits<float>::quiet_NaN());
  for (int64_t at = 0; at < std::ssize(holds_element); at += 2) {
    if (holds_element[at]) continue;
    uint16_t bits;
    std::memcpy(&bits, out.bytes() + at, sizeof(bits));
    const bool is_gap = at % out.stride >= out.stride - SpreadTensor::kGapBytes;
    ASSERT_TRUE(is_gap ? bits == nan[at / 2 % 2] : FromBf16Bits(bits) == 0) << "byte " << at;
  }
  ASSERT_TRUE(out.buffer.SlackIntact());
}

void RunBf16(const Op& op, const std::vector<Tensor>& inputs, const Tensor& want,
             const KernelSetting& setting, const Allowed& allowed) {
  std::vector<Shape> shapes;
  std::vector<std::unique_ptr<SpreadTensor>> spread;
  std::vector<InputView> views;
  for (const Tensor& input : inputs) {
    shapes.push_back(input.shape());
    spread.push_back(std::make_unique<SpreadTensor>(input, setting.layout, setting.guard, true));
    views.push_back({spread.back()->bytes(), spread.back()->stride});
    spread.back()->buffer.MakeReadOnly();
  }
  const std::vector<DataType> types(inputs.size(), DataType::kBf16);
  const auto kernel = op.MakeKernel({shapes, want.shape(), setting.layout, setting.cpu, types});
  for (const Split split : {Split::kEven, Split::kRows, Split::kChannels}) {
    if (!kernel->Grid(kernel->Stages() - 1).Can(split)) continue;
    SpreadTensor out(want, setting.layout, setting.guard, false);
    RunInShares(*kernel, {views, {out.bytes(), out.stride}, nullptr}, split);
    ExpectClose(out, want, allowed);
  }
  for (size_t slot = 0; slot < inputs.size(); ++slot) {
    if (!op.InPlaceOk(static_cast<int>(slot)) || shapes[slot] != want.shape()) continue;
    SCOPED_TRACE("in place of input " + std::to_string(slot));
    SpreadTensor shared(inputs[slot], setting.layout, setting.guard, true);
    std::vector<InputView> in_place = views;
    in_place[slot] = {shared.bytes(), shared.stride};
    RunInShares(*kernel, {in_place, {shared.bytes(), shared.stride}, nullptr});
    ExpectClose(shared, want, allowed);
  }
}

// The widest both with AVX-512 BF16 and without.
std::vector<Target> Cpus() {
  std::vector<Target> cpus = TestCpus();
  cpus.push_back(cpus.back());
  cpus.back().bf16 = false;
  return cpus;
}

void CheckBf16(const Op& op, const std::vector<Tensor>& inputs, const Allowed& allowed) {
  std::vector<Tensor> floats;
  std::vector<const Tensor*> pointers;
  std::vector<Shape> shapes;
  for (const Tensor& input : inputs) {
    floats.push_back(InF32(input));
    shapes.push_back(input.shape());
  }
  for (const Tensor& tensor : floats) pointers.push_back(&tensor);
  const Tensor want = InBf16(op.Reference(pointers));
  const std::vector<DataType> types(inputs.size(), DataType::kBf16);
  ASSERT_TRUE(op.KernelTakes(types));
  ASSERT_TRUE(op.AnyTypeInAnyLayout());
  for (const Layout& order :
       {Layout::Nchw(), Layout::Nhwc(), Layout::Blocked(8), Layout::Blocked(16), Layout::Blocked(32)}) {
    const Layout layout = order.WithType(DataType::kBf16);
    ASSERT_TRUE(op.RunsIn(layout, shapes)) << op.Signature() << " in " << layout.ToString();
    for (const Target& cpu : Cpus()) {
      for (const Guard guard : {Guard::kAfter, Guard::kBefore}) {
        SCOPED_TRACE(op.Signature() + " of " + ShapeToString(shapes[0]) + " in " + layout.ToString() +
                     " on " + std::string(IsaName(cpu.isa)));
        RunBf16(op, inputs, want, {layout, cpu, guard}, allowed);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

Tensor Numbers(const Shape& shape, uint64_t seed) {
  Tensor floats(shape);
  FillUniform({floats.floats(), static_cast<size_t>(floats.size())}, seed, -4.0f, 4.0f);
  return InBf16(floats);
}

// Odd channels, a single one, a single pixel, whole blocks, several images, several tasks of a block.
const std::vector<Shape>& Images() {
  static const std::vector<Shape> shapes = {{2, 1, 3, 5},  {1, 7, 1, 1},  {2, 9, 3, 5},  {2, 16, 2, 2},
                                            {1, 33, 5, 7}, {3, 35, 1, 1}, {1, 96, 1, 1}, {1, 17, 20, 13}};
  return shapes;
}

constexpr BinaryKind kBinaryKinds[] = {BinaryKind::kAdd,  BinaryKind::kSub, BinaryKind::kMul,
                                       BinaryKind::kDiv,  BinaryKind::kMin, BinaryKind::kMax,
                                       BinaryKind::kPRelu};

// Any bits at all: NaN, infinities, what overflows to them, and numbers that are not normal.
TEST(Bf16Kernels, PairsOfAnyNumbers) {
  uint64_t seed = 0;
  for (const BinaryKind kind : kBinaryKinds) {
    const BinaryOp op(kind);
    for (const Shape& shape : Images()) {
      const Tensor a = AnyStored(shape, DataType::kBf16, ++seed),
                   b = AnyStored(shape, DataType::kBf16, ++seed);
      CheckBf16(op, {a, b}, {});
    }
  }
}

// As gates of squeeze-and-excitation do, from either side, and every other way that images broadcast.
TEST(Bf16Kernels, PairsThatBroadcast) {
  uint64_t seed = 0;
  for (const BinaryKind kind : {BinaryKind::kAdd, BinaryKind::kSub, BinaryKind::kMul}) {
    const BinaryOp op(kind);
    for (const Shape& shape :
         {Shape{2, 9, 3, 5}, Shape{1, 33, 5, 7}, Shape{2, 48, 4, 4}, Shape{1, 3, 7, 70}}) {
      const int64_t n = shape[0], c = shape[1], h = shape[2], w = shape[3];
      for (const Shape& other : {Shape{n, c, 1, 1}, Shape{1, c, 1, 1}, Shape{n, 1, h, w}, Shape{1, 1, 1, w},
                                 Shape{n, c, h, 1}, Shape{1, 1, 1, 1}}) {
        const Tensor a = Numbers(shape, ++seed), b = Numbers(other, ++seed);
        CheckBf16(op, {a, b}, {});
        CheckBf16(op, {b, a}, {});
      }
    }
  }
}

// Another function than the reference's, whose result may round to the other side.
TEST(Bf16Kernels, Powers) {
  const Tensor x = Numbers({2, 9, 3, 5}, 1);
  for (const float exponent : {2.0f, 3.0f, 0.5f, -1.5f}) {
    Tensor power({1, 1, 1, 1});
    power.floats()[0] = exponent;
    CheckBf16(BinaryOp(BinaryKind::kPow), {x, InBf16(power)}, {1});
  }
  CheckBf16(BinaryOp(BinaryKind::kPow), {x, Numbers({2, 9, 3, 5}, 2)}, {1});
}

TEST(Bf16Kernels, SumsOfMany) {
  for (const Shape& shape : Images())
    CheckBf16(SumOp(), {Numbers(shape, 1), Numbers(shape, 2), Numbers(shape, 3)}, {1, 1e-6});
  const std::vector<Shape> unequal = {{2, 9, 3, 5}, {2, 9, 1, 1}, {2, 9, 3, 5}};
  EXPECT_FALSE(SumOp().RunsIn(Layout::Nchw(DataType::kBf16), unequal));
}

const Activation kActivations[] = {{ActivationKind::kRelu},
                                   {ActivationKind::kClip, -1.5f, 2.5f},
                                   {ActivationKind::kClip, 0.5f, 2.5f},
                                   {ActivationKind::kLeakyRelu, 0.1f},
                                   {ActivationKind::kHardSigmoid, 0.2f, 0.5f},
                                   {ActivationKind::kHardSwish},
                                   {ActivationKind::kSigmoid},
                                   {ActivationKind::kTanh},
                                   {ActivationKind::kSilu}};

// Those of one comparison and at most one product to the bit.
TEST(Bf16Kernels, Activations) {
  for (const Activation& activation : kActivations) {
    const bool exact = activation.kind == ActivationKind::kRelu || activation.kind == ActivationKind::kClip ||
                       activation.kind == ActivationKind::kLeakyRelu;
    const Allowed allowed = exact ? Allowed() : Allowed{1, 1e-6};
    for (const Shape& shape : Images()) {
      CheckBf16(ActivationOp(activation), {Numbers(shape, 5)}, allowed);
      CheckBf16(ActivationOp(activation), {AnyStored(shape, DataType::kBf16, 6)}, allowed);
    }
  }
}

TEST(Bf16Kernels, ScaleShiftAndSlopes) {
  const auto random = [](int64_t channels, uint64_t seed) {
    std::vector<float> values(static_cast<size_t>(channels));
    FillUniform(values, seed, -2.0f, 2.0f);
    return values;
  };
  for (const Shape& shape : Images()) {
    const int64_t c = shape[1];
    CheckBf16(PReluOp(random(c, 1)), {Numbers(shape, 2)}, {});
    for (const Activation& activation :
         {Activation{}, Activation{ActivationKind::kRelu}, Activation{ActivationKind::kSigmoid},
          Activation{ActivationKind::kSilu}})
      CheckBf16(ScaleShiftOp(random(c, 3), random(c, 4), activation), {Numbers(shape, 5)}, {1, 4e-6});
    const auto count = static_cast<size_t>(c);
    CheckBf16(ScaleShiftOp(std::vector(count, 0.5f), std::vector(count, 0.25f)), {Numbers(shape, 6)}, {});
  }
}

// Of one with a vector function, and of one that is computed number by number.
TEST(Bf16Kernels, Functions) {
  for (int kind = 0; kind <= static_cast<int>(FunctionKind::kThresholdedRelu); ++kind) {
    const FunctionOp op({static_cast<FunctionKind>(kind), 0.7f, 0.4f});
    for (const Shape& shape : {Shape{1, 7, 1, 1}, Shape{2, 9, 3, 5}, Shape{1, 33, 5, 7}})
      CheckBf16(op, {Numbers(shape, 5)}, {1, 2e-5});
  }
}

TEST(Bf16Kernels, Pools) {
  for (const int64_t channels : {1, 15, 16, 35}) {
    for (const PoolKind kind : {PoolKind::kMax, PoolKind::kAverage}) {
      const Allowed allowed = kind == PoolKind::kMax ? Allowed() : Allowed{1, 1e-6};
      PoolWindow window{.kind = kind, .kh = 3, .kw = 3, .sh = 2, .sw = 2, .top = 1, .left = 1};
      CheckBf16(PoolOp(window), {Numbers({2, channels, 9, 11}, 1)}, allowed);
      window = {.kind = kind, .kh = 2, .kw = 3, .dh = 2, .bottom = 1, .right = 2, .count_include_pad = true};
      CheckBf16(PoolOp(window), {Numbers({1, channels, 6, 7}, 2)}, allowed);
      for (const Shape& shape :
           {Shape{2, channels, 5, 7}, Shape{1, channels, 1, 1}, Shape{1, channels, 14, 14}})
        CheckBf16(GlobalPoolOp(kind), {Numbers(shape, 3)}, allowed);
    }
  }
  CheckBf16(GlobalPoolOp(PoolKind::kAverage), {Numbers({2, 130, 3, 3}, 4)}, {1, 1e-6});
}

TEST(Bf16Kernels, Resizing) {
  for (const int64_t channels : {1, 7, 16, 33}) {
    const Shape shape{2, channels, 3, 5};
    for (const ResizeMode mode : {ResizeMode::kNearest, ResizeMode::kLinear}) {
      for (const auto& [height, width] :
           {std::pair(6, 10), std::pair(12, 15), std::pair(7, 6), std::pair(2, 2)}) {
        ResizeParams params;
        params.mode = mode, params.coordinates = ResizeCoordinates::kHalfPixel;
        params.input = shape, params.output = {2, channels, height, width};
        params.scales = {1, 1, static_cast<float>(height) / 3, static_cast<float>(width) / 5};
        const bool moves = mode == ResizeMode::kNearest;
        CheckBf16(ResizeOp(params), {Numbers(shape, 1)}, moves ? Allowed() : Allowed{1, 1e-5});
      }
    }
  }
  ResizeParams channels;
  channels.mode = ResizeMode::kLinear;
  channels.input = {2, 3, 4, 2}, channels.output = {2, 6, 4, 2}, channels.scales = {1, 2, 1, 1};
  const DataType type = DataType::kBf16;
  EXPECT_FALSE(ResizeOp(channels).KernelTakes({&type, 1}));
  EXPECT_FALSE(ResizeOp(channels).RunsIn(Layout::Nchw(type), {&channels.input, 1}));
}

TEST(Bf16Kernels, RefuseMixturesOfTypes) {
  const DataType types[] = {DataType::kBf16, DataType::kF32};
  EXPECT_FALSE(PoolOp({}).KernelTakes(types));
  EXPECT_FALSE(BinaryOp(BinaryKind::kAdd).KernelTakes(types));
  const DataType bytes = DataType::kU8;
  EXPECT_FALSE(PoolOp({}).KernelTakes({&bytes, 1}));
  EXPECT_FALSE(ActivationOp({ActivationKind::kRelu}).KernelTakes({&bytes, 1}));
}

}  // namespace
}  // namespace tilesmith::bf16_kernels
