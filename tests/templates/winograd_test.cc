// What the correctness sweep cannot see of the Winograd template: its matrices, refusals, scratch, errors.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "templates/conv_error.h"
#include "templates/winograd/transforms.h"
#include "templates/winograd/winograd_template.h"
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

TEST(WinogradTransforms, ComputeTheConvolution) {
  TestRandom random(1);
  for (int tile : {2, 4, 6}) {
    const Transforms& t = TransformsOf(tile);
    const Eigen::MatrixXd g = RandomMatrix(3, 3, random), d = RandomMatrix(t.window, t.window, random);
    const Eigen::MatrixXd u = t.weights * g * t.weights.transpose();
    const Eigen::MatrixXd v = t.input * d * t.input.transpose();
    const Eigen::MatrixXd y = t.output * u.cwiseProduct(v) * t.output.transpose();
    for (int row = 0; row < tile; ++row) {
      for (int column = 0; column < tile; ++column) {
        EXPECT_NEAR(y(row, column), d.block(row, column, 3, 3).cwiseProduct(g).sum(), 1e-12) << tile;
      }
    }
  }
}

TEST(WinogradTransforms, AreExactInFloat) {
  for (int tile : {2, 4, 6}) {
    for (const Eigen::MatrixXd& matrix : {TransformsOf(tile).input, TransformsOf(tile).output}) {
      EXPECT_EQ(matrix, matrix.cast<float>().cast<double>()) << tile;
    }
  }
}

TEST(WinogradTransforms, LargerTilesAmplifyErrorsMore) {
  const double two = ErrorAmplification(TransformsOf(2)), four = ErrorAmplification(TransformsOf(4));
  EXPECT_LT(two, four);
  EXPECT_LT(four, ErrorAmplification(TransformsOf(6)));
  EXPECT_LT(four, 0.6 * ErrorAmplification(winograd::DeriveTransforms({1, 2}))) << "the textbook's points";
}

TEST(WinogradTemplate, RefusesWithAReason) {
  const CpuInfo cpu = CapIsa(TestCpu(), Isa::kAvx2);
  const struct {
    const char* workload;
    const char* reason;
  } kCases[] = {{"mb1ic64ih14oc64kh1", "1x1"},          {"mb1ic64ih14oc64kh5ph2", "5x5"},
                {"mb1ic64ih14oc64kh3sh2ph1", "stride"}, {"mb1ic64ih14oc64kh3ph2dh1", "dilated"},
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

TEST(WinogradTemplate, ScratchDoesNotGrowWithTheBatch) {
  if (TestCpu().isa == Isa::kPortable) GTEST_SKIP() << "generates x86 code";
  const CpuInfo cpu = TestCpu();
  const ConvWorkload one = ParseWorkload("mb1ic64ih56oc64kh3ph1"),
                     many = ParseWorkload("mb128ic64ih56oc64kh3ph1");
  const Tensor weights(one.weights_shape());
  const Config config = WinogradTemplate().Default(one, cpu);
  ASSERT_EQ(config.Get("partition"), 0);
  const auto scratch = [&](const ConvWorkload& w) {
    return WinogradTemplate().Build(w, config, cpu, {weights.floats(), nullptr})->ScratchFloats(4);
  };
  EXPECT_EQ(scratch(one), scratch(many));
  const ConfigSpace space = WinogradTemplate().Space(many, cpu);
  const std::string reason = space.WhyInvalid(With(With(config, "partition", 1), "tile_block", 0));
  EXPECT_NE(reason.find("MiB of scratch"), std::string::npos) << reason;
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

TEST(WinogradTemplate, FourByFourIsNoLessAccurateThanOneDnns) {
  if (TestCpu().isa != Isa::kAvx512) GTEST_SKIP() << "oneDNN has Winograd for AVX-512 only";
  for (const char* text : {"mb1ic64ih28oc64kh3ph1", "mb1ic256ih14oc64kh3ph1"}) {
    const ConvWorkload w = ParseWorkload(text);
    std::string refusal;
    const auto theirs = MeasureOneDnnError(w, OneDnnAlgorithm::kWinograd, &refusal);
    if (!theirs) GTEST_SKIP() << refusal;
    const Config config = With(WinogradTemplate().Default(w, TestCpu()), "tile", 4);
    const ConvError ours = MeasureConvError(WinogradTemplate(), w, config, TestCpu());
    RecordProperty(text, fmt::format("ours {:.2e} rms {:.2e} max, oneDNN's {:.2e} {:.2e}", ours.rms, ours.max,
                                     theirs->rms, theirs->max));
    EXPECT_LE(ours.rms, theirs->rms) << text;
    EXPECT_LE(ours.max, 2 * theirs->max) << text << ": the largest of some thousand is a matter of luck";
  }
}

}  // namespace
}  // namespace tilesmith
