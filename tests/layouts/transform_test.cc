#include "layouts/transform.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "layouts/base/error.h"
#include "layouts/base/thread_team.h"
#include "tests/support/guarded_tensor.h"
#include "tests/support/random.h"
#include "tests/support/test_cpu.h"

namespace tilesmith {
namespace {

struct Case {
  Shape shape;
  Layout from, to;
  Isa isa = Isa::kPortable;
  int threads = 1;
  int64_t in_gap = 0, out_gap = 0;  // floats between images
  Guard guard = Guard::kAfter;
  uint64_t seed = 1;
};

std::ostream& operator<<(std::ostream& os, const Case& c) {
  return os << ShapeToString(c.shape) << " " << c.from.ToString() << " -> " << c.to.ToString() << " "
            << IsaName(c.isa) << " threads " << c.threads << " gaps " << c.in_gap << " " << c.out_gap
            << " guard " << (c.guard == Guard::kAfter ? "after" : "before") << " seed " << c.seed;
}

std::vector<Isa> AvailableIsas() {
  std::vector<Isa> isas;
  for (const Isa isa : kIsas) {
    if (isa <= TestCpu().isa) isas.push_back(isa);
  }
  return isas;
}

// Every element distinct, so that a misplaced one shows, and NaN in the padding.
Tensor MakeSource(const Shape& shape, const Layout& layout, uint64_t seed) {
  Tensor plain(shape);
  TestRandom random(seed);
  const float first = static_cast<float>(random.Integer(1, 1000));
  for (int64_t i = 0; i < plain.size(); ++i) plain.floats()[i] = first + static_cast<float>(i);
  Tensor source = TransformGeneric(plain, layout);
  for (int64_t i = 0; i < source.padded_size(); ++i) {
    if (source.floats()[i] == 0) source.floats()[i] = NAN;
  }
  return source;
}

// Runs the fast kernel between guarded buffers, one thread's share after the other; "" or what is wrong.
std::string CheckCase(const Case& c) {
  const Tensor source = MakeSource(c.shape, c.from, c.seed);
  const Tensor expected = TransformGeneric(source, c.to);
  const int64_t images = ToDims4(c.shape).n;
  const int64_t in_floats = BatchStride(c.shape, c.from), out_floats = BatchStride(c.shape, c.to);
  const int64_t in_stride = in_floats + c.in_gap, out_stride = out_floats + c.out_gap;
  GuardedTensor in((images - 1) * in_stride + in_floats, c.guard);
  GuardedTensor out((images - 1) * out_stride + out_floats, c.guard);
  for (int64_t n = 0; n < images; ++n) {
    std::memcpy(in.data() + n * in_stride, source.floats() + n * in_floats, in_floats * sizeof(float));
  }
  in.MakeReadOnly();

  const auto kernel = MakeTransformKernel(c.shape, c.from, c.to, CapIsa(TestCpu(), c.isa));
  const InputView view = in.input_view(in_stride);
  const KernelArgs args = {.inputs = {&view, 1}, .output = out.output_view(out_stride), .scratch = nullptr};
  for (int thread = 0; thread < c.threads; ++thread) {
    kernel->Run(args, 0, ShareOf(kernel->Tasks(0), thread, c.threads));
  }

  for (int64_t n = 0; n < images; ++n) {
    for (int64_t i = 0; i < out_stride && n * out_stride + i < out.size(); ++i) {
      const float got = out[n * out_stride + i];
      if (i >= out_floats) {
        if (!std::isnan(got)) return "wrote between images";
      } else if (const float want = expected.floats()[n * out_floats + i]; got != want) {
        return "image " + std::to_string(n) + " offset " + std::to_string(i) + ": got " +
               std::to_string(got) + ", want " + std::to_string(want);
      }
    }
  }
  return out.SlackIntact() ? "" : "wrote outside the output";
}

const std::vector<Layout>& Layouts() {
  static const std::vector<Layout> layouts = {Layout::Nchw(),      Layout::Nhwc(),      Layout::Blocked(3),
                                              Layout::Blocked(4),  Layout::Blocked(5),  Layout::Blocked(8),
                                              Layout::Blocked(16), Layout::Blocked(32), Layout::Blocked(64)};
  return layouts;
}

// Every pair of layouts meets every channel count under every ISA; the rest is drawn.
TEST(TransformKernel, EqualsGenericForEveryPair) {
  TestRandom random(20240611);
  const std::vector<std::pair<int64_t, int64_t>> planes = {{1, 1}, {3, 5}, {7, 7}, {1, 17}, {14, 14}};
  for (const Layout& from : Layouts()) {
    for (const Layout& to : Layouts()) {
      for (int64_t channels : {1, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100}) {
        for (Isa isa : AvailableIsas()) {
          const auto [height, width] = random.Pick(planes);
          const bool gaps = random.Integer(0, 1) == 1;
          const Case c = {.shape = {random.Integer(1, 2), channels, height, width},
                          .from = from,
                          .to = to,
                          .isa = isa,
                          .threads = static_cast<int>(random.Integer(1, 3)),
                          .in_gap = gaps ? random.Integer(0, 40) : 0,
                          .out_gap = gaps ? random.Integer(0, 40) : 0,
                          .guard = random.Integer(0, 1) == 1 ? Guard::kAfter : Guard::kBefore,
                          .seed = random.Next()};
          ASSERT_EQ(CheckCase(c), "") << c;
        }
      }
    }
  }
}

// Large enough for several chunks and moves, and for every tile to be whole somewhere.
TEST(TransformKernel, EqualsGenericOnLargeTensors) {
  TestRandom random(7);
  const std::vector<Layout> layouts = {Layout::Nchw(), Layout::Nhwc(), Layout::Blocked(8),
                                       Layout::Blocked(16), Layout::Blocked(64)};
  for (const Shape& shape : {Shape{2, 200, 23, 29}, Shape{1, 1030, 3, 3}, Shape{1, 3, 97, 101}}) {
    for (const Layout& from : layouts) {
      for (const Layout& to : layouts) {
        const Case c = {.shape = shape,
                        .from = from,
                        .to = to,
                        .isa = random.Pick(AvailableIsas()),
                        .threads = 3,
                        .out_gap = 16,
                        .seed = random.Next()};
        ASSERT_EQ(CheckCase(c), "") << c;
      }
    }
  }
}

TEST(TransformKernel, TasksMayRunOneByOneInAnyOrder) {
  const Shape shape = {2, 70, 9, 11};
  const Tensor source = MakeSource(shape, Layout::Nchw(), 3);
  const Tensor expected = TransformGeneric(source, Layout::Blocked(16));
  Tensor out(shape, Layout::Blocked(16));
  const auto kernel = MakeTransformKernel(shape, source.layout(), out.layout(), TestCpu());
  const InputView in = source.input_view();
  ASSERT_EQ(kernel->Stages(), 1);
  ASSERT_GT(kernel->Tasks(0), 4);
  for (int64_t task = kernel->Tasks(0) - 1; task >= 0; --task) {
    kernel->Run({.inputs = {&in, 1}, .output = out.output_view(), .scratch = nullptr}, 0,
                {task, task + 1, 0});
  }
  EXPECT_EQ(std::memcmp(out.floats(), expected.floats(), expected.padded_size() * sizeof(float)), 0);
}

TEST(Transform, ThreadsTogetherEqualGeneric) {
  const Tensor source = MakeSource({2, 72, 19, 23}, Layout::Blocked(8), 13);
  for (const Layout& to : Layouts()) {
    const Tensor expected = TransformGeneric(source, to);
    for (int threads : {2, 3}) {
      const Tensor result = Transform(source, to, TestCpu(), threads);
      EXPECT_EQ(std::memcmp(result.floats(), expected.floats(), expected.padded_size() * sizeof(float)), 0)
          << to.ToString() << " threads " << threads;
    }
  }
}

TEST(TransformKernel, CopiesPlainTensorsOfAnyRank) {
  for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 3}, Shape{3, 2, 5, 2, 7}}) {
    const Tensor source = MakeSource(shape, Layout::Nchw(), 11);
    const Tensor copy = Transform(source, Layout::Nchw(), TestCpu(), 2);
    ASSERT_EQ(copy.shape(), shape);
    EXPECT_EQ(std::memcmp(copy.floats(), source.floats(), source.size() * sizeof(float)), 0)
        << ShapeToString(shape);
  }
}

TEST(Transform, RoundsToNearestEven) {
  Tensor floats({1, 1, 1, 6});
  const float values[] = {1.00390625f, 1.01171875f, 3e38f, -3.4e38f, 1e-40f, -0.0f};
  std::copy_n(values, 6, floats.floats());
  const Tensor rounded = Transform(floats, Layout::Nchw(DataType::kBf16), TestCpu(), 1);
  const Tensor back = Transform(rounded, Layout::Nchw(), TestCpu(), 1);
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(back.floats()[0], 1.0f);       // half of a unit, to even
  EXPECT_EQ(back.floats()[1], 1.015625f);  // the same, to even, which is above
  EXPECT_NEAR(back.floats()[2], 3e38f, 0x1p-8f * 3e38f);
  EXPECT_EQ(back.floats()[3], -infinity);
  EXPECT_NEAR(back.floats()[4], 1e-40f, 1e-40f * 0x1p-3f);  // subnormal, and kept
  EXPECT_TRUE(std::signbit(back.floats()[5]));
}

// Where the CPU takes subnormal floats for zero, as it does while a team runs.
TEST(TransformKernel, EveryNumberOf16BitsAndWhatLiesBesideIsConverted) {
  for (const DataType type : {DataType::kF16, DataType::kBf16}) {
    Tensor narrow({1, 16, 64, 64}, Layout::Nchw(type));
    for (int64_t i = 0; i < narrow.size(); ++i) {
      const auto bits = static_cast<uint16_t>(i);
      std::memcpy(narrow.raw() + i * 2, &bits, 2);
    }
    const Tensor wide = TransformGeneric(narrow, Layout::Nchw());
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    // The numbers, the middles between two neighbours, where ties are, and what lies just beside each.
    Tensor floats({5, 16, 64, 64});
    for (int64_t i = 0; i < wide.size(); ++i) {
      const float middle = wide.floats()[i] * (1 + (type == DataType::kF16 ? 0x1p-11f : 0x1p-8f));
      const float values[] = {wide.floats()[i], middle, std::nextafter(middle, kInfinity),
                              std::nextafter(middle, -kInfinity), wide.floats()[i] + 0x1p-25f};
      for (int64_t k = 0; k < 5; ++k) floats.floats()[k * wide.size() + i] = values[k];
    }
    const Tensor expected = TransformGeneric(floats, Layout::Nchw(type));
    for (const Isa isa : AvailableIsas()) {
      SCOPED_TRACE(testing::Message() << DataTypeName(type) << " " << IsaName(isa));
      const Target cpu = CapIsa(TestCpu(), isa);
      const Tensor widened = Transform(narrow, Layout::Nchw(), cpu, 1);
      const Tensor narrowed = Transform(floats, Layout::Nchw(type), cpu, 1);
      EXPECT_EQ(std::memcmp(widened.raw(), wide.raw(), static_cast<size_t>(wide.bytes())), 0);
      EXPECT_EQ(std::memcmp(narrowed.raw(), expected.raw(), static_cast<size_t>(expected.bytes())), 0);
    }
  }
}

TEST(TransformKernel, EmptyTensorHasNoTasks) {
  EXPECT_EQ(MakeTransformKernel({0, 8, 2, 2}, Layout::Nchw(), Layout::Nhwc(), TestCpu())->Tasks(0), 0);
  EXPECT_EQ(MakeTransformKernel({1, 0, 2, 2}, Layout::Nhwc(), Layout::Nhwc(), TestCpu())->Tasks(0), 0);
  EXPECT_EQ(MakeTransformKernel({1, 8, 0, 2}, Layout::Blocked(4), Layout::Nchw(), TestCpu())->Tasks(0), 0);
}

TEST(TransformGeneric, PlacesElementsByHand) {
  Tensor source({1, 3, 1, 2});
  for (int i = 0; i < 6; ++i) source.floats()[i] = static_cast<float>(i + 1);
  const Tensor blocked = TransformGeneric(source, Layout::Blocked(2));
  const std::vector<float> want_blocked = {1, 3, 2, 4, 5, 0, 6, 0};
  EXPECT_EQ(std::vector<float>(blocked.floats(), blocked.floats() + 8), want_blocked);
  const Tensor nhwc = TransformGeneric(blocked, Layout::Nhwc());
  const std::vector<float> want_nhwc = {1, 3, 5, 2, 4, 6};
  EXPECT_EQ(std::vector<float>(nhwc.floats(), nhwc.floats() + 6), want_nhwc);
}

TEST(Transform, RoundTripsThroughEveryLayout) {
  Tensor tensor = MakeSource({2, 19, 5, 6}, Layout::Nchw(), 5);
  const Tensor original = tensor;
  for (const Layout& layout : Layouts()) tensor = Transform(tensor, layout, TestCpu(), 2);
  tensor = Transform(tensor, Layout::Nchw(), TestCpu(), 2);
  EXPECT_EQ(std::memcmp(tensor.floats(), original.floats(), original.size() * sizeof(float)), 0);
}

// Bytes against a guard page, on the side that it guards, and NaN floats around them.
class GuardedBytes {
 public:
  GuardedBytes(int64_t bytes, Guard guard)
      : floats_((bytes + 3) / 4, guard), bytes_(bytes), after_(guard == Guard::kAfter) {
    std::memset(floats_.data(), 0xa5, static_cast<size_t>(floats_.size()) * 4);
  }
  std::byte* data() {
    return reinterpret_cast<std::byte*>(floats_.data()) + (after_ ? floats_.size() * 4 - bytes_ : 0);
  }
  GuardedTensor& memory() { return floats_; }

 private:
  GuardedTensor floats_;
  int64_t bytes_;
  bool after_;
};

// Types stay, or are converted between f32 and 16 bits: any bits, NaNs and infinities among them.
TEST(TransformKernel, ElementsOfEverySize) {
  constexpr DataType kTypes[] = {DataType::kU8,  DataType::kI8,  DataType::kBool, DataType::kBf16,
                                 DataType::kF16, DataType::kI32, DataType::kF32,  DataType::kI64};
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    TestRandom random(seed);
    const auto some_layout = [&] {
      constexpr int64_t kBlocks[] = {1, 2, 3, 8, 16, 17, 64, 100};
      const int64_t kind = random.Integer(0, 9);
      return kind < 2   ? Layout::Nhwc()
             : kind < 4 ? Layout::Nchw()
                        : Layout::Blocked(random.Pick(std::span(kBlocks)));
    };
    const DataType type = random.Pick(std::span(kTypes));
    const bool converted = random.Integer(0, 1) == 0;
    constexpr DataType kNarrow[] = {DataType::kBf16, DataType::kF16};
    const DataType other = type == DataType::kF32 ? random.Pick(std::span(kNarrow))
                           : IsFloating(type)     ? DataType::kF32
                                                  : type;
    const Layout from = some_layout().WithType(type);
    const Layout to = some_layout().WithType(converted ? other : type);
    const int64_t channels =
        random.Integer(0, 5) == 0 ? 3 : random.Integer(1, random.Integer(0, 9) == 0 ? 300 : 70);
    const Shape shape = {random.Integer(1, 3), channels, random.Integer(1, 9), random.Integer(1, 40)};
    const Isa isa = random.Pick(AvailableIsas());
    const Guard guard = random.Integer(0, 1) == 0 ? Guard::kAfter : Guard::kBefore;
    SCOPED_TRACE(testing::Message() << ShapeToString(shape) << " " << from.ToString() << " -> "
                                    << to.ToString() << " " << IsaName(isa) << " seed " << seed);
    Tensor plain(shape, Layout::Nchw(type));
    for (int64_t i = 0; i < plain.bytes(); ++i) plain.raw()[i] = static_cast<std::byte>(random.Next());
    const Tensor source = TransformGeneric(plain, from), expected = TransformGeneric(source, to);
    const int64_t in_bytes = BatchBytes(shape, from), out_bytes = BatchBytes(shape, to);
    const int64_t in_stride = in_bytes + random.Integer(0, 3) * from.element_bytes();
    const int64_t out_stride = out_bytes + random.Integer(0, 3) * to.element_bytes();
    GuardedBytes in((shape[0] - 1) * in_stride + in_bytes, guard);
    GuardedBytes out((shape[0] - 1) * out_stride + out_bytes, guard);
    for (int64_t n = 0; n < shape[0]; ++n)
      std::memcpy(in.data() + n * in_stride, source.raw() + n * in_bytes, static_cast<size_t>(in_bytes));
    in.memory().MakeReadOnly();
    const auto kernel = MakeTransformKernel(shape, from, to, CapIsa(TestCpu(), isa));
    const InputView view = {in.data(), in_stride};
    for (int thread = 0; thread < 3; ++thread)
      kernel->Run({.inputs = {&view, 1}, .output = {out.data(), out_stride}, .scratch = nullptr}, 0,
                  ShareOf(kernel->Tasks(0), thread, 3));
    for (int64_t n = 0; n < shape[0]; ++n) {
      ASSERT_EQ(std::memcmp(out.data() + n * out_stride, expected.raw() + n * out_bytes,
                            static_cast<size_t>(out_bytes)),
                0)
          << "image " << n;
      for (int64_t i = out_bytes; n + 1 < shape[0] && i < out_stride; ++i)
        ASSERT_EQ(out.data()[n * out_stride + i], std::byte{0xa5}) << "gap behind image " << n;
    }
    ASSERT_TRUE(out.memory().SlackIntact());
  }
}

TEST(TransformKernel, ConvertsNoOtherTypes) {
  const Tensor source({1, 2, 3, 3});
  const Layout to = Layout::Blocked(8, DataType::kU8);
  for (const auto& transform : {std::function<void()>([&] { TransformGeneric(source, to); }),
                                std::function<void()>([&] { Transform(source, to, TestCpu(), 1); })}) {
    try {
      transform();
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadModel);
      EXPECT_NE(std::string(error.what()).find("NCHW8c:u8"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace tilesmith
