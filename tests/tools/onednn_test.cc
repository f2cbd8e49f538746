// The twins must compute what the project's own formulas say, or the baseline would be timed on another
// problem.
#include "tools/onednn/onednn.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <random>

#include "layouts/base/error.h"
#include "ops/conv/conv.h"
#include "templates/base/conv_template.h"
#include "tests/support/test_cpu.h"

namespace tilesmith {
namespace {

constexpr double kEps = std::numeric_limits<float>::epsilon();

Tensor UniformTensor(const Shape& shape, unsigned seed) {
  Tensor tensor(shape);
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.floats()[i] = uniform(random);
  return tensor;
}

std::vector<float> RandomVector(int64_t size, unsigned seed) {
  const Tensor tensor = UniformTensor({size}, seed);
  return {tensor.floats(), tensor.floats() + size};
}

// Calls check(n, c, h, w, flat index) for every element of a 4-D shape.
template <typename Check>
void ForEach(const Shape& shape, const Check& check) {
  int64_t i = 0;
  for (int64_t n = 0; n < shape[0]; ++n)
    for (int64_t c = 0; c < shape[1]; ++c)
      for (int64_t h = 0; h < shape[2]; ++h)
        for (int64_t w = 0; w < shape[3]; ++w) check(n, c, h, w, i++);
}

struct ConvData {
  explicit ConvData(const ConvWorkload& w)
      : input(UniformTensor(w.input_shape(), 1)),
        weights(UniformTensor(w.weights_shape(), 2)),
        bias(UniformTensor({w.oc}, 3)),
        residual(UniformTensor(w.output_shape(), 4)) {}
  ConvParams Params(const ConvWorkload& w) const {
    return {weights.floats(), w.post.bias ? bias.floats() : nullptr};
  }
  ConvSample At(const ConvWorkload& w, const Dims4& index) const {
    return ReferenceConvAt(w, input, weights, w.post.bias ? &bias : nullptr, w.post.sum ? &residual : nullptr,
                           index);
  }
  Tensor input, weights, bias, residual;
};

// |error| of a float sum of `terms` products is at most terms * eps * sum|products|; the activations stretch
// it by at most 1.5 (hard_swish's slope) and round once or twice more.
double DirectTolerance(const ConvWorkload& w, const ConvSample& sample) {
  const double terms = static_cast<double>(w.ic / w.g * w.kh * w.kw) + 4;
  return 1.5 * terms * kEps * sample.magnitude + 4 * kEps * (1 + std::abs(sample.value));
}

void ExpectConv(const ConvWorkload& w, const ConvData& data, const Tensor& output,
                const std::function<double(const ConvSample&)>& tolerance) {
  ASSERT_EQ(output.shape(), w.output_shape());
  ForEach(w.output_shape(), [&](int64_t n, int64_t c, int64_t y, int64_t x, int64_t i) {
    const ConvSample sample = data.At(w, {n, c, y, x});
    ASSERT_NEAR(output.floats()[i], sample.value, tolerance(sample)) << n << " " << c << " " << y << " " << x;
  });
}

TEST(OneDnnConv, DirectAndAutoMatchTheFormula) {
  const char* workloads[] = {
      "mb1ic1ih5oc1kh3ph1",
      "mb2ic3ih17oc13kh7sh2ph3+bias+relu",
      "mb1ic16ih9oc17kh1+bias+sum+relu",
      "mb1ic37ih8iw5oc31kh3ph1+sum",
      "mb1ic33ih11oc16kh3ph2dh1+bias+clip:0:0.7",
      "g4mb1ic16ih7oc12kh3ph1+bias+leaky_relu:0.1",
      "g24mb1ic24ih9oc24kh3sh2ph1+bias+clip:0:6",
      "mb1ic5ih6oc7kh3kw1ph1pw0+hard_swish",
      "mb1ic8ih6oc8kh2+bias+hard_sigmoid:0.2:0.5",
      "mb1ic16ih10oc32oh5kh2sh2ph0+bias+clip:-1:1",
      "mb1ic16ih8oh4oc8kh3sh2ph0+bias",  // padded at the bottom and right only
      "mb1ic16ih8oh3oc8kh1sh3",
  };
  for (const char* text : workloads) {
    const ConvWorkload w = ParseWorkload(text);
    const ConvData data(w);
    for (const auto algorithm : {OneDnnAlgorithm::kDirect, OneDnnAlgorithm::kAuto}) {
      SCOPED_TRACE(fmt::format("{} {}", text, OneDnnAlgorithmName(algorithm)));
      std::string refusal;
      const auto conv = OneDnnConv::Create(w, algorithm, data.Params(w), &refusal);
      ASSERT_NE(conv, nullptr) << refusal;
      conv->SetInput(data.input);
      if (w.post.sum) conv->SetResidual(data.residual);
      conv->Run();
      ExpectConv(w, data, conv->GetOutput(),
                 [&](const ConvSample& sample) { return DirectTolerance(w, sample); });
      EXPECT_FALSE(conv->ImplName().empty());
      EXPECT_GE(conv->PackedWeights().size(), static_cast<size_t>(data.weights.bytes()));
    }
  }
}

// Winograd computes sums of transformed inputs that exceed the plain products: for F(4,3) with the usual
// points the absolute row sums of A, G and B multiply to about 48 a dimension, where a direct conv has 3. So
// errors may be (48/3)^2 = 256 times larger, while the roundings themselves, being independent, add up as the
// square root of their number.
TEST(OneDnnConv, WinogradMatchesTheFormula) {
  for (const char* text : {"mb1ic64ih14oc64kh3ph1+bias+relu", "mb1ic32ih13oc48kh3ph1+bias+sum"}) {
    SCOPED_TRACE(text);
    const ConvWorkload w = ParseWorkload(text);
    const ConvData data(w);
    std::string refusal;
    const auto conv = OneDnnConv::Create(w, OneDnnAlgorithm::kWinograd, data.Params(w), &refusal);
    if (conv == nullptr) {
      EXPECT_NE(refusal, "");
      continue;  // oneDNN 3 and CPUs without AVX-512 have none
    }
    EXPECT_NE(conv->ImplName().find("wino"), std::string::npos);
    conv->SetInput(data.input);
    if (w.post.sum) conv->SetResidual(data.residual);
    conv->Run();
    ExpectConv(w, data, conv->GetOutput(), [&](const ConvSample& sample) {
      return 256 * std::sqrt(static_cast<double>(w.ic * 9)) * kEps * sample.magnitude;
    });
  }
}

TEST(OneDnnConv, RefusesWinogradWhereThereIsNone) {
  const ConvWorkload w = ParseWorkload("mb1ic16ih14oc16kh5ph2");
  const ConvData data(w);
  std::string refusal;
  EXPECT_EQ(OneDnnConv::Create(w, OneDnnAlgorithm::kWinograd, data.Params(w), &refusal), nullptr);
  EXPECT_NE(refusal, "");
  EXPECT_EQ(OneDnnConv::Create(w, OneDnnAlgorithm::kWinograd, data.Params(w)), nullptr);
}

TEST(OneDnnConv, SumAccumulatesIntoTheOutput) {
  const ConvWorkload w = ParseWorkload("mb1ic8ih4oc8kh1+sum");
  const ConvData data(w);
  const auto conv = OneDnnConv::Create(w, OneDnnAlgorithm::kDirect, data.Params(w));
  ASSERT_NE(conv, nullptr);
  conv->SetInput(data.input);
  conv->SetResidual(data.residual);
  conv->Run();
  const Tensor once = conv->GetOutput();
  conv->Run();
  const Tensor twice = conv->GetOutput();
  conv->SetResidual(data.residual);
  conv->Run();
  const Tensor again = conv->GetOutput();
  for (int64_t i = 0; i < once.size(); ++i) {
    EXPECT_EQ(again.floats()[i], once.floats()[i]);
    const float product = once.floats()[i] - data.residual.floats()[i];
    EXPECT_NEAR(twice.floats()[i], once.floats()[i] + product, 20 * kEps * 20);
  }
}

TEST(OneDnnConv, WrongShapesAreOurBug) {
  const ConvWorkload w = ParseWorkload("mb1ic8ih4oc8kh1");
  const ConvData data(w);
  const auto conv = OneDnnConv::Create(w, OneDnnAlgorithm::kDirect, data.Params(w));
  ASSERT_NE(conv, nullptr);
  EXPECT_THROW(conv->SetInput(Tensor({1, 8, 5, 4})), Error);
  EXPECT_THROW(conv->SetInput(1, data.input), Error);
  ConvParams surplus = data.Params(w);
  surplus.bias = data.bias.floats();
  EXPECT_THROW(OneDnnConv::Create(w, OneDnnAlgorithm::kDirect, surplus), Error);
}

const Layout kLayouts[] = {Layout::Nchw(), Layout::Nhwc(), Layout::Blocked(8), Layout::Blocked(16)};

float PoolAt(const OneDnnPool& p, const Tensor& in, const Dims4& at) {
  double sum = 0, best = -INFINITY;
  int64_t inside = 0;
  for (int64_t i = 0; i < p.kh; ++i) {
    for (int64_t j = 0; j < p.kw; ++j) {
      const int64_t y = at.h * p.sh - p.ph + i * (p.dh + 1), x = at.w * p.sw - p.pw + j * (p.dw + 1);
      if (y < 0 || y >= p.input[2] || x < 0 || x >= p.input[3]) continue;
      const double v = in.floats()[((at.n * p.input[1] + at.c) * p.input[2] + y) * p.input[3] + x];
      sum += v;
      best = std::max(best, v);
      ++inside;
    }
  }
  const double divisor = static_cast<double>(p.count_include_pad ? p.kh * p.kw : inside);
  return static_cast<float>(p.max ? best : sum / divisor);
}

TEST(OneDnnPrimitive, PoolsInEveryLayout) {
  OneDnnPool max{
      .input = {2, 19, 9, 8}, .output = {2, 19, 5, 4}, .kh = 3, .kw = 3, .sh = 2, .sw = 2, .ph = 1, .pw = 1};
  OneDnnPool average = max;
  average.max = false;
  OneDnnPool padded = average;
  padded.count_include_pad = true;
  OneDnnPool global{.input = {1, 24, 7, 7}, .output = {1, 24, 1, 1}, .max = false, .kh = 7, .kw = 7};
  OneDnnPool dilated{.input = {1, 5, 9, 9}, .output = {1, 5, 5, 5}, .kh = 3, .kw = 3, .dh = 1, .dw = 1};
  OneDnnPool ceiled{.input = {1, 16, 6, 6}, .output = {1, 16, 3, 3}, .kh = 3, .kw = 3, .sh = 2, .sw = 2};
  int made = 0;
  for (const OneDnnPool& pool : {max, average, padded, global, dilated, ceiled}) {
    const Tensor input = UniformTensor(pool.input, 5);
    for (const Layout& layout : kLayouts) {
      std::string refusal;
      const auto twin = MakeOneDnnPool(pool, layout, &refusal);
      ASSERT_NE(twin, nullptr) << refusal;
      ++made;
      twin->SetInput(0, input);
      twin->Run();
      const Tensor output = twin->GetOutput();
      ForEach(pool.output, [&](int64_t n, int64_t c, int64_t y, int64_t x, int64_t i) {
        const double tolerance = pool.max ? 0 : static_cast<double>(pool.kh * pool.kw + 2) * kEps;
        ASSERT_NEAR(output.floats()[i], PoolAt(pool, input, {n, c, y, x}), tolerance) << layout.ToString();
      });
    }
  }
  EXPECT_EQ(made, 24);
}

TEST(OneDnnPrimitive, SumsTwoAndActivates) {
  const Shape shape = {2, 32, 5, 3};
  const Tensor a = UniformTensor(shape, 6), b = UniformTensor(shape, 7);
  const Activation relu = ParseActivation("relu");
  for (const Layout& layout : kLayouts) {
    std::string refusal;
    const auto twin = MakeOneDnnSum(shape, 2, relu, layout, &refusal);
    ASSERT_NE(twin, nullptr) << refusal;
    twin->SetInput(0, a);
    twin->SetInput(1, b);
    twin->Run();
    const Tensor output = twin->GetOutput();
    for (int64_t i = 0; i < output.size(); ++i) {
      ASSERT_NEAR(output.floats()[i], std::max(0.f, a.floats()[i] + b.floats()[i]), 2 * kEps)
          << layout.ToString();
    }
  }
  EXPECT_EQ(MakeOneDnnSum({2, 19, 5, 4}, 2, relu, Layout::Blocked(8)), nullptr);
  EXPECT_EQ(MakeOneDnnSum(shape, 3, relu, Layout::Nchw()), nullptr);
}

TEST(OneDnnPrimitive, ActivatesWithExponentials) {
  const Shape shape = {2, 19, 5, 4};
  const Tensor in = UniformTensor(shape, 6);
  for (const char* text : {"sigmoid", "tanh", "silu"}) {
    const Activation activation = ParseActivation(text);
    const auto twin = MakeOneDnnActivation(shape, activation, Layout::Nhwc());
    ASSERT_NE(twin, nullptr) << text;
    twin->SetInput(0, in);
    twin->Run();
    const Tensor out = twin->GetOutput();
    for (int64_t i = 0; i < out.size(); ++i) {
      ASSERT_NEAR(out.floats()[i], activation.Apply(in.floats()[i]), 1e-5) << text;
    }
  }
}

TEST(OneDnnPrimitive, SumsThreeActivatesAndScales) {
  const Shape shape = {2, 19, 5, 4};
  const Tensor a = UniformTensor(shape, 6), b = UniformTensor(shape, 7), c = UniformTensor(shape, 8);
  const std::vector<float> scale = RandomVector(19, 9), shift = RandomVector(19, 10);
  const Activation relu = ParseActivation("relu"), hard_sigmoid = ParseActivation("hard_sigmoid:0.2:0.5");
  for (const Layout& layout : kLayouts) {
    SCOPED_TRACE(layout.ToString());
    std::string refusal;
    const auto sum = MakeOneDnnSum(shape, 3, {}, layout, &refusal);
    const auto act = MakeOneDnnActivation(shape, hard_sigmoid, layout, &refusal);
    const auto scaled = MakeOneDnnScaleShift(shape, {scale.data(), shift.data(), relu}, layout, &refusal);
    ASSERT_TRUE(sum && act && scaled) << refusal;
    for (OneDnnPrimitive* twin : {sum.get(), act.get(), scaled.get()}) twin->SetInput(0, a);
    sum->SetInput(1, b);
    sum->SetInput(2, c);
    for (OneDnnPrimitive* twin : {sum.get(), act.get(), scaled.get()}) twin->Run();
    const Tensor sum_out = sum->GetOutput(), act_out = act->GetOutput(), scaled_out = scaled->GetOutput();
    ForEach(shape, [&](int64_t, int64_t channel, int64_t, int64_t, int64_t i) {
      const float x = a.floats()[i];
      ASSERT_NEAR(sum_out.floats()[i], x + b.floats()[i] + c.floats()[i], 4 * kEps);
      ASSERT_NEAR(act_out.floats()[i], hard_sigmoid.Apply(x), 4 * kEps);
      ASSERT_NEAR(scaled_out.floats()[i], std::max(0.f, scale[channel] * x + shift[channel]), 4 * kEps);
    });
  }
  std::string refusal;
  EXPECT_EQ(MakeOneDnnActivation(shape, relu, Layout::Blocked(6), &refusal), nullptr);
  EXPECT_EQ(refusal, "oneDNN has no layout NCHW6c");
}

TEST(OneDnnPrimitive, ConcatenatesChannels) {
  const std::vector<Shape> shapes = {{2, 16, 3, 2}, {2, 5, 3, 2}, {2, 32, 3, 2}};
  for (const Layout& layout : {Layout::Nchw(), Layout::Nhwc(), Layout::Blocked(16)}) {
    std::string refusal;
    const auto concat = MakeOneDnnConcat(shapes, layout, &refusal);
    ASSERT_NE(concat, nullptr) << refusal << layout.ToString();
    std::vector<Tensor> inputs;
    for (int i = 0; i < 3; ++i) {
      inputs.push_back(UniformTensor(shapes[i], 20 + i));
      concat->SetInput(i, inputs.back());
    }
    concat->Run();
    const Tensor output = concat->GetOutput();
    const Shape expected = {2, 53, 3, 2};
    ASSERT_EQ(output.shape(), expected);
    ForEach(expected, [&](int64_t n, int64_t c, int64_t y, int64_t x, int64_t i) {
      const int part = c < 16 ? 0 : c < 21 ? 1 : 2;
      const int64_t local = c - (part == 0 ? 0 : part == 1 ? 16 : 21);
      ASSERT_EQ(output.floats()[i], inputs[part].floats()[((n * shapes[part][1] + local) * 3 + y) * 2 + x]);
    });
    EXPECT_EQ(concat->OutputLayoutName(), layout.ToString());
  }
}

TEST(OneDnnPrimitive, InnerProductAndSoftmax) {
  const int64_t rows = 3, in = 37, out = 21;
  const Tensor x = UniformTensor({rows, in, 1, 1}, 11), weights = UniformTensor({out, in}, 12);
  const std::vector<float> bias = RandomVector(out, 13);
  std::string refusal;
  const auto dense = MakeOneDnnInnerProduct(
      {rows, in, out, weights.floats(), bias.data(), ParseActivation("relu")}, &refusal);
  ASSERT_NE(dense, nullptr) << refusal;
  dense->SetInput(0, x);
  dense->Run();
  const Tensor y = dense->GetOutput().Reshaped({rows, out});  // images of one pixel
  const auto softmax = MakeOneDnnSoftmax({rows, out}, 1, &refusal);
  ASSERT_NE(softmax, nullptr) << refusal;
  softmax->SetInput(0, y);
  softmax->Run();
  const Tensor p = softmax->GetOutput();
  for (int64_t r = 0; r < rows; ++r) {
    double total = 0;
    for (int64_t o = 0; o < out; ++o) {
      double value = bias[o], magnitude = std::abs(bias[o]);
      for (int64_t i = 0; i < in; ++i) {
        const double term = static_cast<double>(x.floats()[r * in + i]) * weights.floats()[o * in + i];
        value += term;
        magnitude += std::abs(term);
      }
      EXPECT_NEAR(y.floats()[r * out + o], std::max(0.0, value), (in + 2) * kEps * magnitude);
      total += std::exp(static_cast<double>(y.floats()[r * out + o]));
    }
    for (int64_t o = 0; o < out; ++o) {
      const double expected = std::exp(static_cast<double>(y.floats()[r * out + o])) / total;
      EXPECT_NEAR(p.floats()[r * out + o], expected, 100 * kEps * expected);  // exp and the divisor's sum
    }
  }
  EXPECT_GE(dense->PackedWeights().size(), static_cast<size_t>(in * out) * sizeof(float));
  EXPECT_TRUE(softmax->PackedWeights().empty());
}

// In a process of its own, since oneDNN can be capped only before its first primitive.
void MakeCappedConv() {
  OneDnnCapIsa(Isa::kPortable);
  const ConvWorkload w = ParseWorkload("mb1ic16ih8oc16kh3ph1");
  const ConvData data(w);
  const auto conv = OneDnnConv::Create(w, OneDnnAlgorithm::kDirect, data.Params(w));
  const bool capped = conv != nullptr && conv->ImplName().find("avx") == std::string::npos;
  OneDnnCapIsa(Isa::kPortable);  // as it is
  bool refused = false;
  try {
    OneDnnCapIsa(Isa::kAvx2);
  } catch (const Error&) {
    refused = true;
  }
  std::exit(capped && refused ? 0 : 1);
}

TEST(OneDnn, CapsItsInstructionsOnlyInTime) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(MakeCappedConv(), testing::ExitedWithCode(0), "");
}

TEST(OneDnn, ReportsVersionAndFollowsThreads) {
  EXPECT_TRUE(OneDnnVersion().starts_with("2.") || OneDnnVersion().starts_with("3.")) << OneDnnVersion();
  OneDnnSetThreads(1);
  const ConvWorkload w = ParseWorkload("mb1ic16ih8oc16kh3ph1");
  const ConvData data(w);
  const auto conv = OneDnnConv::Create(w, OneDnnAlgorithm::kDirect, data.Params(w));
  ASSERT_NE(conv, nullptr);
  conv->SetInput(data.input);
  conv->Run();
  ExpectConv(w, data, conv->GetOutput(), [&](const ConvSample& s) { return DirectTolerance(w, s); });
}

TEST(OneDnn, WinogradOfFourByFourIsNoMoreAccurateThanOurs) {
  const Target cpu = TestCpu();
  const ConvTemplate& winograd = FindConvTemplate("winograd");
  if (cpu.isa != Isa::kAvx512) GTEST_SKIP() << "oneDNN has Winograd for AVX-512 only";
  // With a batch of one oneDNN prefers F(2 x 2).
  for (const char* text : {"mb16ic64ih28oc64kh3ph1", "mb8ic128ih14oc64kh3ph1", "mb8ic256ih14oc64kh3ph1"}) {
    const ConvWorkload w = ParseWorkload(text);
    const Tensor weights(w.weights_shape());
    std::string refusal;
    const auto twin =
        OneDnnConv::Create(w, OneDnnAlgorithm::kWinograd, {weights.floats(), nullptr}, &refusal);
    if (twin == nullptr) GTEST_SKIP() << refusal;
    if (twin->ImplName().find("4x3") == std::string::npos) GTEST_SKIP() << twin->ImplName();
    const auto theirs = MeasureOneDnnError(w, OneDnnAlgorithm::kWinograd);
    ASSERT_TRUE(theirs);
    Config config = winograd.Default(w, cpu);
    config.Set("tile", 4);
    const ConvError ours = MeasureConvError(winograd, w, config, cpu);
    EXPECT_LE(ours.rms, theirs->rms) << text;
    EXPECT_LE(ours.max, 2 * theirs->max) << text << ": the largest of some thousand is a matter of luck";
  }
}

}  // namespace
}  // namespace tilesmith
