// Every fast kernel against its op's Reference; those that move or resize images are in
// image_kernels_test.cc.
#include "ops/dense/softmax.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/movement/concat.h"
#include "ops/movement/pad.h"
#include "ops/movement/transpose.h"
#include "ops/movement/view.h"
#include "ops/pool/pool.h"
#include "tests/ops/kernel_check.h"
#include "tests/ops/test_node.h"

namespace tilesmith {
namespace {

std::vector<float> Values(int64_t count, uint64_t seed) {
  std::vector<float> values(count);
  FillUniform(values, seed, -2.0f, 2.0f);
  return values;
}

TEST(Kernels, Activations) {
  struct Named {
    const char* text;
    double tolerance;
  };
  // Exact where one rounding happens; x / 6 + 0.5 may be fused; the transcendental ones promise a few ulp.
  const Named kinds[] = {{"relu", 0},
                         {"clip:-1:2.5", 0},
                         {"clip:1:2", 0},
                         {"leaky_relu:0.1", 0},
                         {"hard_sigmoid:0.2:0.5", kUlp},
                         {"hard_swish", 8 * kUlp},
                         {"sigmoid", 4 * kUlp},
                         {"tanh", 4 * kUlp},
                         {"silu", 16 * kUlp}};
  for (const Named& kind : kinds) {
    const auto op = std::make_shared<ActivationOp>(ParseActivation(kind.text));
    ExpectRunsEverywhere(*op, {{1, 9, 3, 3}});
    ForEachChannelCount([&](int64_t n, int64_t c) { Check({op, {{n, c, 3, 5}}, kind.tolerance}); });
    Check({op, {{2, 19}}, kind.tolerance});
    Check({op, {{2, 3, 2, 2, 5}}, kind.tolerance});
    Check({op, {{1, 9, 60, 61}}, kind.tolerance});
  }
}

TEST(Kernels, SigmoidAndTanhAtTheirLimits) {
  for (const char* text : {"sigmoid", "tanh"}) {
    const ActivationOp op(ParseActivation(text));
    const float xs[] = {0,
                        -0.0f,
                        1e-20f,
                        -1e-6f,
                        0.62f,
                        0.63f,
                        20,
                        -20,
                        90,
                        -90,
                        1e30f,
                        -1e30f,
                        std::numeric_limits<float>::infinity(),
                        -std::numeric_limits<float>::infinity(),
                        std::numeric_limits<float>::quiet_NaN()};
    const int64_t count = std::size(xs);
    for (const Isa isa : {Isa::kPortable, TestCpu().isa}) {
      float got[std::size(xs)];
      const InputView in{xs, count * 4};
      RunInShares(*op.MakeKernel({{{1, count}}, {1, count}, Layout::Nchw(), CapIsa(TestCpu(), isa)}),
                  {{&in, 1}, {got, count * 4}, nullptr});
      for (int64_t i = 0; i + 1 < count; ++i) {
        EXPECT_NEAR(got[i], op.activation().Apply(xs[i]), 4 * kUlp * std::abs(got[i]) + 1e-37)
            << text << " of " << xs[i];
      }
      EXPECT_TRUE(std::isnan(got[count - 1])) << text;
    }
  }
}

TEST(Kernels, SiluAtItsLimits) {
  const ActivationOp op(ParseActivation("silu"));
  const float xs[] = {0, -1e-20f, 1e-6f, 20, -20, 86, -86, 90, -90, -1000, 1e30f, -1e30f};
  const int64_t count = std::size(xs);
  for (const Isa isa : {Isa::kPortable, TestCpu().isa}) {
    float got[std::size(xs)];
    const InputView in{xs, count * 4};
    RunInShares(*op.MakeKernel({{{1, count}}, {1, count}, Layout::Nchw(), CapIsa(TestCpu(), isa)}),
                {{&in, 1}, {got, count * 4}, nullptr});
    for (int64_t i = 0; i < count; ++i) {
      const float want = op.activation().Apply(xs[i]);
      EXPECT_NEAR(got[i], want, 4 * kUlp * std::abs(want) + 1e-35) << xs[i];
    }
  }
}

TEST(Kernels, ScaleShift) {
  ForEachChannelCount([](int64_t n, int64_t c) {
    for (const char* activation : {"", "relu", "sigmoid", "clip:0.5:3"}) {
      const auto op = std::make_shared<ScaleShiftOp>(Values(c, 1), Values(c, 2), ParseActivation(activation));
      // |scale * x| <= 8, |shift| <= 2: product and sum round once each.
      Check({op, {{n, c, 3, 5}}, 20 * kUlp});
    }
  });
  Check({std::make_shared<ScaleShiftOp>(Values(6, 1), Values(6, 2)), {{2, 6}}, 20 * kUlp});
  Check({std::make_shared<ScaleShiftOp>(Values(6, 1), Values(6, 2)), {{2, 6, 2, 3, 4}}, 20 * kUlp});
  const std::vector<float> twos(17, 2.0f), thirds(17, 1 / 3.0f);
  for (const Shape& shape : {Shape{2, 17, 3, 5}, Shape{1, 17, 2}, Shape{3, 17}}) {
    Check({std::make_shared<ScaleShiftOp>(twos, thirds), {shape}, 20 * kUlp});
    Check({std::make_shared<ScaleShiftOp>(twos, Values(17, 1)), {shape}, 20 * kUlp});
    Check({std::make_shared<ScaleShiftOp>(Values(17, 1), thirds), {shape}, 20 * kUlp});
  }
  ExpectRunsEverywhere(ScaleShiftOp({1}, {0}), {{1, 1, 3, 3}});
}

TEST(Kernels, PRelu) {
  ForEachChannelCount([](int64_t n, int64_t c) {
    Check({std::make_shared<PReluOp>(Values(c, 3)), {{n, c, 3, 5}}});
  });
  ExpectRunsEverywhere(PReluOp({1}), {{1, 1, 3, 3}});
}

TEST(Kernels, Binary) {
  for (const BinaryKind kind : {BinaryKind::kAdd, BinaryKind::kSub, BinaryKind::kMul, BinaryKind::kDiv}) {
    const auto op = std::make_shared<BinaryOp>(kind);
    ForEachChannelCount([&](int64_t n, int64_t c) {
      Check({op, {{n, c, 3, 5}, {n, c, 3, 5}}});
      Check({op, {{n, c, 3, 5}, {n, c, 1, 1}}});
      Check({op, {{n, c, 1, 1}, {n, c, 3, 5}}});
    });
    ExpectRunsEverywhere(*op, {{1, 9, 3, 3}, {1, 9, 1, 1}});
    const std::vector<Shape> odd = {{2, 9, 3, 3}, {3}};
    EXPECT_FALSE(op->RunsIn(Layout::Nhwc(), odd));
    Check({op, odd});
  }
}

TEST(Kernels, Sum) {
  const auto op = std::make_shared<SumOp>();
  ForEachChannelCount([&](int64_t n, int64_t c) {
    const Shape shape{n, c, 3, 5};
    Check({op, {shape, shape, shape}, 0, true});
    Check({op, {shape, shape, shape, shape, shape}, 0, true});
  });
  EXPECT_FALSE(op->RunsIn(Layout::Nhwc(), std::vector<Shape>{{1, 2, 3, 4}, {4}, {4}}));
  Check({op, {{1, 2, 3, 4}, {4}, {1, 2, 1, 1}}, 0, true});
}

TEST(Kernels, Pool) {
  std::vector<PoolWindow> windows = {
      {.kh = 3, .kw = 3, .sh = 2, .sw = 2, .top = 1, .left = 1, .bottom = 1, .right = 1},
      {.kh = 2, .kw = 2, .sh = 2, .sw = 2, .ceil_mode = true},
      {.kh = 3, .kw = 2, .dh = 2, .dw = 3, .top = 2, .left = 0, .bottom = 1, .right = 3},
      {.kh = 1, .kw = 1, .sh = 3, .sw = 4},
      {.kh = 7, .kw = 11},
      {.kh = 1, .kw = 2, .sh = 1, .sw = 3, .top = 2, .left = 3, .bottom = 1, .right = 4},
      {.kh = 3, .kw = 3, .sh = 3, .sw = 3, .top = 1, .left = 1, .bottom = 1, .right = 1, .ceil_mode = true},
  };
  for (PoolWindow window : windows) {
    ForEachChannelCount([&](int64_t n, int64_t c) {
      window.kind = PoolKind::kMax;
      Check({std::make_shared<PoolOp>(window), {{n, c, 7, 11}}});
      window.kind = PoolKind::kAverage;
      for (const bool include : {false, true}) {
        window.count_include_pad = include;
        // Integers: the sum is exact, the quotient rounds once (and the reference's twice).
        Check({std::make_shared<PoolOp>(window), {{n, c, 7, 11}}, 8 * kUlp, true});
      }
    });
  }
}

TEST(Kernels, GlobalPool) {
  ForEachChannelCount([](int64_t n, int64_t c) {
    for (const bool keep : {true, false}) {
      for (const Shape& shape : {Shape{n, c, 7, 11}, Shape{n, c, 1, 1}, Shape{n, c, 1, 3}}) {
        Check({std::make_shared<GlobalPoolOp>(PoolKind::kMax, keep), {shape}});
        Check({std::make_shared<GlobalPoolOp>(PoolKind::kAverage, keep), {shape}, 8 * kUlp, true});
      }
    }
  });
  Check({std::make_shared<GlobalPoolOp>(PoolKind::kAverage), {{2, 150, 3, 3}}, 8 * kUlp, true});
}

TEST(Kernels, Exp) {
  const auto op = TestNode("Exp").Input(Counting({1})).Build().op;
  for (const int64_t c : kChannels) Check({op, {{2, c, 3, 2}}, 4 * kUlp * std::exp(4.0)});
  const std::vector<float> x = {0, -0.0f, 1, 88, 88.7f, 89, 1000, -87, -100, -1000, INFINITY, -INFINITY, NAN};
  const Tensor in = Floats({static_cast<int64_t>(x.size())}, x);
  Tensor out(in.shape());
  const auto kernel = op->MakeKernel({{in.shape()}, in.shape(), Layout::Nchw(), TestCpu()});
  const std::vector<InputView> inputs = {{in.floats(), 4}};
  RunKernel(*kernel, {inputs, {out.floats(), 4}, nullptr}, 1);
  for (size_t i = 0; i < x.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "e^" << x[i]);
    const float want = std::exp(x[i]), got = out.floats()[i];
    if (std::isfinite(want)) {
      EXPECT_NEAR(got, want, 1e-6 * want + 1e-38);
    } else {
      EXPECT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << got;
    }
  }
}

TEST(Kernels, Concat) {
  const auto op = std::make_shared<ConcatOp>(1);
  ForEachChannelCount([&](int64_t n, int64_t c) {
    Check({op, {{n, c, 3, 5}, {n, 5, 3, 5}, {n, 16, 3, 5}}});
    Check({op, {{n, 32, 3, 5}, {n, c, 3, 5}}});
    Check({op, {{n, c, 3, 5}}});
  });
  Check({op, {{2, 40, 23, 9}, {2, 64, 23, 9}, {2, 1, 23, 9}}});
  Check({op, {{2, 5}, {2, 12}}});
  Check({std::make_shared<ConcatOp>(2), {{2, 5, 3, 2}, {2, 5, 4, 2}}});
  Check({std::make_shared<ConcatOp>(2), {{2, 6, 9}, {2, 6, 1}, {2, 6, 4}}});
  Check({std::make_shared<ConcatOp>(2), {{1, 300, 2}, {1, 300, 0}, {1, 300, 2}}});
  Check({std::make_shared<ConcatOp>(3), {{2, 3, 7, 5}, {2, 3, 7, 1}}});
  Check({std::make_shared<ConcatOp>(2), {{2, 3, 0}, {2, 3, 0}}});
  Check({std::make_shared<ConcatOp>(0), {{2, 5}, {1, 5}}});
  EXPECT_FALSE(ConcatOp(2).RunsIn(Layout::Nhwc(), std::vector<Shape>{{1, 2, 3, 4}}));
}

TEST(Kernels, Softmax) {
  for (const int64_t count : {1, 3, 16, 17, 1000}) {
    Check({std::make_shared<SoftmaxOp>(1, 1), {{2, count}}, 16 * kUlp});
    Check({std::make_shared<SoftmaxOp>(2, 2), {{2, 3, count}}, 16 * kUlp});
    Check({std::make_shared<SoftmaxOp>(1, 2), {{2, 3, count}}, 16 * kUlp});
    Check({std::make_shared<SoftmaxOp>(1, 1), {{2, 3, count}}, 16 * kUlp});
  }
  Check({std::make_shared<SoftmaxOp>(0, 0), {{5}}, 16 * kUlp});
}

TEST(Kernels, PlainCopies) {
  Check({std::make_shared<TransposeOp>(std::vector<int64_t>{0, 2, 3, 1}), {{2, 3, 5, 7}}});
  Check({std::make_shared<TransposeOp>(std::vector<int64_t>{0, 2, 1, 3}), {{2, 3, 5, 7}}});
  Check({std::make_shared<TransposeOp>(std::vector<int64_t>{3, 1, 0, 2}), {{2, 3, 5, 7}}});
  Check({std::make_shared<TransposeOp>(std::vector<int64_t>{1, 0}), {{4, 6}}});
  Check({std::make_shared<TransposeOp>(std::vector<int64_t>{0}), {{4}}});
  for (const PadMode mode : {PadMode::kConstant, PadMode::kReflect, PadMode::kEdge}) {
    const auto pad = [&](std::vector<int64_t> begin, std::vector<int64_t> end) {
      return std::make_shared<PadOp>(mode, std::move(begin), std::move(end), 1.5f);
    };
    Check({pad({0, 0, 1, 2}, {0, 0, 3, 1}), {{2, 3, 5, 7}}});
    Check({pad({1, 2, 0, -2}, {1, 0, -1, 3}), {{2, 3, 5, 7}}});
    Check({pad({0, 0, 0, -3}, {0, 0, 0, -2}), {{2, 3, 5, 7}}});
    Check({pad({2}, {1}), {{4}}});
  }
  Check({std::make_shared<ViewOp>("Reshape", Shape{3, -1}), {{2, 6, 5, 7}}});
  Check({std::make_shared<ViewOp>("Flatten", Shape{0, -1}), {{2, 6, 50, 70}}});
  Check({std::make_shared<ViewOp>("Identity"), {{2, 3}}});
}

}  // namespace
}  // namespace tilesmith
