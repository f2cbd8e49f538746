// What the correctness sweep cannot see of the Winograd template: its matrices, refusals, scratch, errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "layouts/base/thread_team.h"
#include "templates/base/conv_error.h"
#include "templates/direct/config.h"
#include "templates/winograd/config.h"
#include "templates/winograd/transforms.h"
#include "tests/support/random.h"
#include "tests/support/test_cpu.h"

namespace tilesmith {
namespace {

using winograd::Transforms;
using winograd::TransformsOf;

Config With(Config config, std::string_view knob, int64_t value) {
  config.Set(knob, value);
  return config;
}

Eigen::MatrixXd RandomMatrix(int rows, int columns, TestRandom& random) {
  return Eigen::MatrixXd::NullaryExpr(rows, columns, [&] { return random.Uniform(); });
}

// Every tile of either stride.
std::vector<Transforms> AllTransforms() {
  return {TransformsOf(2),    TransformsOf(4),    TransformsOf(6),
          TransformsOf(2, 2), TransformsOf(3, 2), TransformsOf(4, 2)};
}

TEST(WinogradTransforms, ComputeTheConvolution) {
  TestRandom random(1);
  for (const Transforms& t : AllTransforms()) {
    const int tile = t.tile;
    const Eigen::MatrixXd g = RandomMatrix(3, 3, random), d = RandomMatrix(t.window, t.window, random);
    const Eigen::MatrixXd u = t.weights * g * t.weights.transpose();
    const Eigen::MatrixXd v = t.input * d * t.input.transpose();
    const Eigen::MatrixXd y = t.output * u.cwiseProduct(v) * t.output.transpose();
    for (int row = 0; row < tile; ++row) {
      for (int column = 0; column < tile; ++column) {
        EXPECT_NEAR(y(row, column), d.block(row * t.stride, column * t.stride, 3, 3).cwiseProduct(g).sum(),
                    1e-12)
            << tile;
      }
    }
  }
}

TEST(WinogradTransforms, AreExactInFloat) {
  for (const Transforms& t : AllTransforms()) {
    for (const Eigen::MatrixXd& matrix : {t.input, t.output}) {
      EXPECT_EQ(matrix, matrix.cast<float>().cast<double>()) << t.tile;
    }
  }
}

TEST(WinogradTransforms, MergeEqualColumnsOnly) {
  for (const Transforms& t : AllTransforms()) {
    const winograd::MergedProducts merged = MergeProducts(t);
    EXPECT_EQ(merged.output.window, t.stride == 1 ? t.window : 2 * t.tile - 1) << t.tile;
    ASSERT_EQ(static_cast<int>(merged.sum_of.size()), t.window);
    for (int i = 0; i < t.window; ++i)
      EXPECT_EQ(merged.output.output.col(merged.sum_of[i]), t.output.col(i)) << t.tile << " " << i;
  }
}

TEST(WinogradTransforms, LargerTilesAmplifyErrorsMore) {
  const double two = ErrorAmplification(TransformsOf(2)), four = ErrorAmplification(TransformsOf(4));
  EXPECT_LT(two, four);
  EXPECT_LT(four, ErrorAmplification(TransformsOf(6)));
  EXPECT_LT(four, 0.6 * ErrorAmplification(winograd::DeriveTransforms({1, 2}))) << "the textbook's points";
  EXPECT_LT(ErrorAmplification(TransformsOf(4, 2)), four);
}

TEST(WinogradTemplate, RefusesWithAReason) {
  const Target cpu = CapIsa(TestCpu(), kCodeIsas[0]);
  const struct {
    const char* workload;
    const char* reason;
  } kCases[] = {{"mb1ic64ih14oc64kh1", "1x1"},          {"mb1ic64ih14oc64kh5ph2", "5x5"},
                {"mb1ic64ih14oc64kh3sh3ph1", "stride"}, {"mb1ic64ih14oc64kh3ph2dh1", "dilated"},
                {"g2mb1ic64ih14oc64kh3ph1", "groups"},  {"mb1ic3ih14oc64kh3ph1", "channels"}};
  for (const auto& c : kCases) {
    const Support support = WinogradTemplate().Supports(ParseWorkload(c.workload), cpu);
    EXPECT_FALSE(support.ok) << c.workload;
    if (cpu.isa == Isa::kPortable) continue;
    EXPECT_NE(support.reason.find(c.reason), std::string::npos) << support.reason;
  }
  EXPECT_FALSE(
      WinogradTemplate().Supports(ParseWorkload("mb1ic64ih14oc64kh3ph1"), CapIsa(cpu, Isa::kPortable)).ok);
}

// Without tuning nobody has said how large errors may be.
TEST(WinogradTemplate, DefaultsKeepToTilesOfSmallErrors) {
  if (TestCpu().isa == Isa::kPortable) GTEST_SKIP() << "generates x86 code";
  for (const char* text :
       {"ic128ih56oc128oh56kh3ph1", "ic512ih14oc512oh14kh3ph1", "ic64ih28oc64oh14kh3sh2ph1"})
    EXPECT_LE(WinogradTemplate().Default(ParseWorkload(text), TestCpu()).Get("tile"), 4) << text;
}

TEST(WinogradTemplate, ScratchDoesNotGrowWithTheBatch) {
  if (TestCpu().isa == Isa::kPortable) GTEST_SKIP() << "generates x86 code";
  const Target cpu = TestCpu();
  const ConvWorkload one = ParseWorkload("mb1ic64ih56oc64kh3ph1"),
                     many = ParseWorkload("mb128ic64ih56oc64kh3ph1");
  const Tensor weights(one.weights_shape());
  const Config config = WinogradTemplate().Default(one, cpu);
  ASSERT_EQ(config.Get("partition"), 0);
  const auto scratch = [&](const ConvWorkload& w) {
    return WinogradTemplate().Build(w, config, cpu, {weights.floats(), nullptr})->ScratchBytes(4);
  };
  EXPECT_EQ(scratch(one), scratch(many));
  const ConfigSpace space = WinogradTemplate().Space(many, cpu);
  const std::string reason = space.WhyInvalid(With(With(config, "partition", 1), "tile_block", 0));
  EXPECT_NE(reason.find("MiB of scratch"), std::string::npos) << reason;
}

TEST(WinogradTemplate, ComputesShapesOfFewTilesAndOddEdges) {
  if (TestCpu().isa == Isa::kPortable) GTEST_SKIP() << "generates x86 code";
  for (const char* text : {"mb1ic8ih1oc8oh1kh3ph1", "mb1ic8ih3oc8oh1kh3", "mb1ic16ih1iw40oc24oh1ow40kh3ph1",
                           "mb2ic9ih40iw1oc17oh40ow1kh3ph1", "mb1ic8ih2oc8oh7kh3ph3", "mb3ic20ih7oc33kh3ph1",
                           "mb1ic8ih9oc8oh7kh3", "mb1ic8ih1oc8oh1kh3sh2ph1",
                           "mb2ic17ih8iw23oc20oh4ow12kh3sh2ph1", "mb1ic8ih15oc24oh7kh3sh2"}) {
    const ConvWorkload w = ParseWorkload(text);
    for (Isa isa : kCodeIsas) {
      const Target cpu = CapIsa(TestCpu(), isa);
      ASSERT_TRUE(WinogradTemplate().Supports(w, cpu).ok) << text;
      Config config = WinogradTemplate().Default(w, cpu);
      EXPECT_EQ(WinogradTemplate().Space(w, cpu).WhyInvalid(config), "") << text;
      for (int64_t tile : w.sh == 1 ? std::vector<int64_t>{2, 4, 6} : std::vector<int64_t>{2, 3, 4}) {
        config.Set("tile", tile);
        EXPECT_LT(MeasureConvError(WinogradTemplate(), w, config, cpu).max, 2e-4) << text << " tile " << tile;
      }
    }
  }
}

TEST(WinogradTemplate, StreamsTheSameOutputWhereItIsAligned) {
  Target cpu = TestCpu();
  if (cpu.isa != Isa::kAvx512) GTEST_SKIP() << "vectors narrower than a cache line cannot be streamed";
  cpu.l3_bytes = 1;  // any output is too large for the caches
  const ConvWorkload w = ParseWorkload("mb2ic16ih13oc40kh3ph1");
  TestRandom random(7);
  Tensor input(w.input_shape(), Layout::Blocked(16)), weights(w.weights_shape());
  std::generate_n(input.floats(), input.padded_size(), [&] { return random.Uniform(); });
  std::generate_n(weights.floats(), weights.size(), [&] { return random.Uniform(); });
  const Config streaming = WinogradTemplate().Default(w, cpu);
  ASSERT_EQ(streaming.Get("stream"), 1);
  const int64_t image = BatchStride(w.output_shape(), Layout::Blocked(16));
  const auto run = [&](const Config& config, int64_t misalignment) {
    const auto kernel = WinogradTemplate().Build(w, config, cpu, {weights.floats(), nullptr});
    const AlignedBuffer scratch(kernel->ScratchBytes(2));
    const AlignedBuffer output((2 * image + misalignment) * sizeof(float));
    const InputView inputs[] = {input.input_view()};
    RunKernel(*kernel, {inputs, {output.floats() + misalignment, image * 4}, scratch.floats()}, 2);
    return std::vector<float>(output.floats() + misalignment, output.floats() + misalignment + 2 * image);
  };
  const std::vector<float> expected = run(With(streaming, "stream", 0), 0);
  EXPECT_EQ(run(streaming, 0), expected);
  EXPECT_EQ(run(streaming, 4), expected) << "not aligned: must not stream";
}

TEST(WinogradTemplate, ErrorsStayWithinTheirFactorAndGrowWithTheTile) {
  if (TestCpu().isa == Isa::kPortable) GTEST_SKIP() << "generates x86 code";
  for (const char* text : {"mb1ic8ih24oc16kh3ph1", "mb1ic64ih24oc16kh3ph1"}) {
    const ConvWorkload w = ParseWorkload(text);
    const Config config = WinogradTemplate().Default(w, TestCpu());
    double before = 0;
    for (int tile : {2, 4, 6}) {
      const Config with_tile = With(config, "tile", tile);
      const ConvError error = MeasureConvError(WinogradTemplate(), w, with_tile, TestCpu());
      EXPECT_GT(error.rms, before) << text << " tile " << tile;
      before = error.rms;
      // Uniform data: a term is 1/4 on average, 1/3 in the root mean square.
      const double terms = w.ic * 9.0;
      const double bound = RoundingBound(w, terms / 4) / (std::sqrt(terms) / 3);
      EXPECT_LT(error.max, bound * WinogradTemplate().ErrorFactor(w, with_tile)) << text << " tile " << tile;
    }
  }
}

TEST(WinogradBf16Template, NoiseIsThatOfItsProducts) {
  if (!TestCpu().bf16) GTEST_SKIP() << "needs AVX-512 BF16";
  const ConvWorkload w = ParseWorkload("mb1ic64ih24oc32kh3ph1");
  const ConvTemplate &direct = DirectBf16Template(), &winograd = WinogradBf16Template();
  const double of_sum = std::pow(MeasureConvError(direct, w, direct.Default(w, TestCpu()), TestCpu()).rms, 2);
  const Config floats = With(With(winograd.Default(w, TestCpu()), "tile", 2), "product_type", 0);
  const Config pairs = With(floats, "product_type", static_cast<int64_t>(DataType::kBf16));
  ASSERT_EQ(winograd.Space(w, TestCpu()).WhyInvalid(pairs), "");
  EXPECT_EQ(winograd.Bf16Noise(w, floats), 1);
  EXPECT_LT(std::pow(MeasureConvError(winograd, w, floats, TestCpu()).rms, 2), of_sum);
  const double noise = std::pow(MeasureConvError(winograd, w, pairs, TestCpu()).rms, 2) / of_sum;
  EXPECT_NEAR(noise / winograd.Bf16Noise(w, pairs), 1, 0.2);
}

TEST(WinogradBf16Template, RefusesWhatWouldNotBeItsOwn) {
  if (!TestCpu().bf16) GTEST_SKIP() << "needs AVX-512 BF16";
  constexpr auto kBf16 = static_cast<int64_t>(DataType::kBf16);
  const ConvWorkload w = ParseWorkload("mb1ic64ih24oc32kh3ph1");
  const ConfigSpace space = WinogradBf16Template().Space(w, TestCpu());
  const Config config = WinogradBf16Template().Default(w, TestCpu());
  EXPECT_EQ(space.WhyInvalid(config), "");
  EXPECT_THAT(space.WhyInvalid(With(With(config, "in_type", 0), "out_type", 0)),
              testing::HasSubstr("that is the winograd template"));
  EXPECT_THAT(space.WhyInvalid(With(With(config, "tile", 4), "product_type", kBf16)),
              testing::HasSubstr("tile 4 with products in bf16"));
  const ConvWorkload odd = ParseWorkload("mb1ic63ih24oc32kh3ph1");
  const Config pairs = With(With(With(config, "tile", 2), "product_type", kBf16), "broadcast", 0);
  EXPECT_THAT(WinogradBf16Template().Space(odd, TestCpu()).WhyInvalid(pairs),
              testing::HasSubstr("whole pairs"));
  Target without = TestCpu();
  without.bf16 = false;
  EXPECT_NE(WinogradBf16Template().Space(w, without).WhyInvalid(With(config, "product_type", kBf16)), "");
}

}  // namespace
}  // namespace tilesmith
