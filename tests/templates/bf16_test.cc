// The templates that compute in bf16: random workloads and configs against the reference, on integers that
// bf16 holds, whose sums are exact, and on arbitrary numbers within the derived bound; with the CPU's
// instructions for bf16 and without them. TILESMITH_SWEEP=N makes the sweep N cases per template long.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "layouts/transform.h"
#include "ops/conv/conv.h"
#include "templates/base/conv_error.h"
#include "templates/base/conv_template.h"
#include "tests/support/guarded_run.h"
#include "tests/support/magnitude.h"
#include "tests/support/random_config.h"
#include "tests/support/random_workload.h"
#include "tests/support/test_cpu.h"
#include "tests/templates/rebuilt_kernel.h"

namespace tilesmith::bf16_conv {
namespace {

// A template on the CPU that tests assume, with or without its instructions for bf16.
struct Setting {
  const ConvTemplate* conv_template;
  bool instructions = true;
  Target cpu() const {
    Target cpu = TestCpu();
    if (!instructions) cpu.bf16 = cpu.amx = false;
    return cpu;
  }
};

struct Case {
  const ConvTemplate* conv_template;
  Target cpu;
  ConvWorkload workload;
  Config config;
  uint64_t seed = 0;
  std::string Text() const {
    return fmt::format("{} {} {} seed {}", conv_template->Name(), WorkloadToString(workload),
                       config.ToString(), seed);
  }
};

int SweepLength() { return CaseCount("TILESMITH_SWEEP", 400); }

// What a case computes, as floats in its output's order, padding included.
Tensor Compute(const Case& c, const ConvData& data, TestRandom& random) {
  const ConvWorkload& w = c.workload;
  const LayoutPair layouts = c.conv_template->Layouts(w, c.config);
  const auto kernel = BuildRebuilt(*c.conv_template, w, c.config, c.cpu, WeightsOf(data.tensors()));
  SCOPED_TRACE(c.Text());
  const Tensor* residual = w.post.sum ? &*data.residual : nullptr;
  const Tensor got = RunGuarded(*kernel, w, layouts, data.input, residual, random);
  return TransformGeneric(got, layouts.out.WithType(DataType::kF32));
}

bool IsExact(const Activation& activation) {
  return activation.kind != ActivationKind::kHardSwish && activation.kind != ActivationKind::kHardSigmoid;
}

void CheckIntegers(const Case& c) {
  TestRandom random(c.seed);
  uint64_t seed = c.seed;
  const ConvData data = MakeConvData(c.workload, [&seed](Tensor& tensor) {
    FillIntegers({tensor.floats(), static_cast<size_t>(tensor.size())}, ++seed);
  });
  const Layout out = c.conv_template->Layouts(c.workload, c.config).out;
  const Layout floats = out.WithType(DataType::kF32);
  const Tensor exact = TransformGeneric(ReferenceConv(c.workload, data.tensors()), floats);
  const Tensor rounded = TransformGeneric(TransformGeneric(exact, out), floats);
  const Tensor got = Compute(c, data, random);
  const bool is_exact = IsExact(c.workload.post.activation);
  const double one_step = out.type() == DataType::kBf16 ? 0x1p-7 : 4e-7;
  constexpr double kPostOps = 2, kBiasAndResidual = 8;
  const double factor = c.conv_template->ErrorFactor(c.workload, c.config);
  const double mixed =
      factor == 1 ? 0
                  : kPostOps * factor *
                        RoundingBound(c.workload, LargestMagnitude(c.workload, data) + kBiasAndResidual);
  for (int64_t i = 0; i < exact.padded_size(); ++i) {
    const float want = rounded.floats()[i], have = got.floats()[i];
    const double rounded_apart = is_exact && mixed == 0 ? 0 : one_step * (std::abs(want) + mixed);
    ASSERT_NEAR(want, have, mixed + rounded_apart)
        << "offset " << i << ", exact " << exact.floats()[i] << ": " << c.Text();
  }
}

std::optional<Case> DrawCase(const Setting& setting, TestRandom& random, uint64_t seed) {
  constexpr int kMaxTries = 1000, kOneFusedIn = 4;
  const ConvTemplate& conv_template = *setting.conv_template;
  for (int i = 0; i < kMaxTries; ++i) {
    Case c{&conv_template, setting.cpu(), {}, {}, seed};
    c.workload = random.Integer(1, kOneFusedIn) == 1 ? RandomFusedWorkload(random) : RandomWorkload(random);
    if (!conv_template.Supports(c.workload, c.cpu).ok) continue;
    const ConfigSpace space = conv_template.Space(c.workload, c.cpu);
    c.config = conv_template.Default(c.workload, c.cpu);
    EXPECT_EQ(space.WhyInvalid(c.config), "") << c.Text();
    if (seed % 8 != 0) c.config = RandomValidConfig(space, random, 20000).value_or(c.config);
    return c;
  }
  return std::nullopt;
}

bool MultipliesTiles(const ConvTemplate& conv_template) { return conv_template.Name() == "amx_bf16"; }

class Bf16Conv : public testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    if (TestCpu().isa == Isa::kPortable) GTEST_SKIP() << "needs AVX2";
    if (GetParam().instructions && !TestCpu().bf16) GTEST_SKIP() << "needs AVX-512 BF16";
    if (MultipliesTiles(*GetParam().conv_template) && !TestCpu().amx) GTEST_SKIP() << "needs AMX";
  }
};

TEST_P(Bf16Conv, IsExactWhereNothingRounds) {
  int ran = 0;
  for (int i = 0; i < SweepLength() && !HasFatalFailure(); ++i) {
    TestRandom random(static_cast<uint64_t>(i) * 16 + 5);
    const auto c = DrawCase(GetParam(), random, static_cast<uint64_t>(i));
    if (!c) continue;
    SCOPED_TRACE(c->Text());
    CheckIntegers(*c);
    ++ran;
  }
  EXPECT_GT(ran, SweepLength() / 2);
}

// Numbers of many magnitudes, every output held to its own bound, and the bound is not idle: rounding is
// seen.
TEST_P(Bf16Conv, StaysWithinItsBound) {
  TestRandom random(3);
  double largest_share = 0;
  for (uint64_t i = 0; i < 60 && !HasFatalFailure(); ++i) {
    const auto c = DrawCase(GetParam(), random, i);
    if (!c) continue;
    SCOPED_TRACE(c->Text());
    const ConvWorkload& w = c->workload;
    const ConvData data = MakeConvData(w, [&](Tensor& tensor) {
      for (int64_t k = 0; k < tensor.size(); ++k) {
        const float scale = std::ldexp(1.0f, static_cast<int>(random.Integer(-3, 3)));
        tensor.floats()[k] = scale * (static_cast<float>(random.Integer(-1000000, 1000000)) / 1000000);
      }
    });
    const Tensor got = TransformGeneric(Compute(*c, data, random), Layout::Nchw());
    const LayoutPair layouts = c->conv_template->Layouts(w, c->config);
    const TypeRounding rounding = TypeRoundingOf(*c->conv_template, w, layouts);
    const Dims4 dims = ToDims4(w.output_shape());
    constexpr double kBiasAndResidual = 16;
    const double factor = c->conv_template->ErrorFactor(w, c->config);
    const double mixed = factor == 1 ? 0 : LargestMagnitude(w, data) + kBiasAndResidual;
    for (int k = 0; k < 40; ++k) {
      const Dims4 at = {random.Integer(0, dims.n - 1), random.Integer(0, dims.c - 1),
                        random.Integer(0, dims.h - 1), random.Integer(0, dims.w - 1)};
      const ConvSample sample = ReferenceConvAt(w, data.tensors(), at);
      constexpr double kPostOps = 2;
      const double magnitude = factor == 1 ? sample.magnitude : mixed;
      const double floats = kPostOps * factor * RoundingBound(w, magnitude);
      const double bound = TypedBound(rounding, floats, magnitude, sample.value) + 1e-30;
      const double error = std::abs(got.floats()[ElementOffset(dims, Layout::Nchw(), at)] - sample.value);
      ASSERT_LE(error, bound);
      largest_share = std::max(largest_share, error / bound);
    }
  }
  EXPECT_GT(largest_share, 0.05);
}

// A NaN and an infinity go to the outputs that read them and to no other.
TEST_P(Bf16Conv, KeepsNansAndInfinities) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  TestRandom random(5);
  for (uint64_t i = 0; i < 60 && !HasFatalFailure(); ++i) {
    auto c = DrawCase(GetParam(), random, i);
    if (!c || !IsExact(c->workload.post.activation)) continue;
    if (c->conv_template->ErrorFactor(c->workload, c->config) != 1) continue;  // spreads to neighbours
    SCOPED_TRACE(c->Text());
    uint64_t seed = i;
    ConvData data = MakeConvData(c->workload, [&seed](Tensor& tensor) {
      FillIntegers({tensor.floats(), static_cast<size_t>(tensor.size())}, ++seed);
      for (int64_t k = 0; k < tensor.size(); ++k) tensor.floats()[k] += tensor.floats()[k] == 0 ? 1 : 0;
    });
    data.input.floats()[random.Integer(0, data.input.size() - 1)] = i % 2 == 0 ? kNan : -kInf;
    const Tensor expected = ReferenceConv(c->workload, data.tensors());
    const Tensor got = TransformGeneric(Compute(*c, data, random), Layout::Nchw());
    for (int64_t k = 0; k < expected.size(); ++k) {
      const float want = expected.floats()[k], have = got.floats()[k];
      ASSERT_EQ(std::isnan(want), std::isnan(have)) << "output " << k;
      if (std::isnan(want)) continue;
      const float allowed = std::isfinite(want) ? 0x1p-8f * std::abs(want) : 0;
      ASSERT_TRUE(want == have || std::abs(want - have) <= allowed) << "output " << k << ": " << have;
    }
  }
}

TEST_P(Bf16Conv, ReadsAndWritesBothTypes) {
  const ConvTemplate& conv_template = *GetParam().conv_template;
  const Target cpu = GetParam().cpu();
  for (const char* text : {"ic64ih14oc64kh3ph1+bias+relu", "g64ic64ih14oc64kh3ph1+bias+relu",
                           "g16ic64ih14oc64kh3ph1+bias+relu"}) {
    const ConvWorkload w = ParseWorkload(text);
    if (!conv_template.Supports(w, cpu).ok) continue;
    std::set<std::pair<DataType, DataType>> types;
    for (const LayoutPair& pair : conv_template.LayoutPairs(w, conv_template.Space(w, cpu)))
      types.insert({pair.in.type(), pair.out.type()});
    EXPECT_TRUE(types.contains({DataType::kBf16, DataType::kBf16}));
    EXPECT_TRUE(types.contains({DataType::kBf16, DataType::kF32}));
    EXPECT_TRUE(types.contains({DataType::kF32, DataType::kBf16}));
  }
}

// The templates of a GPU are emulated elsewhere.
std::vector<const ConvTemplate*> OfThisProcess() { return ConvTemplates(kCpuDevice, DataType::kBf16); }

TEST(Bf16Templates, OnlyTilesAreRefusedWithoutTheInstructions) {
  const ConvWorkload dense = ParseWorkload("ic64ih14oc64kh3ph1"),
                     grouped = ParseWorkload("g16ic64ih14oc64kh3ph1"),
                     depthwise = ParseWorkload("g64ic64ih14oc64kh3ph1");
  for (const ConvTemplate* conv_template : OfThisProcess()) {
    SCOPED_TRACE(conv_template->Name());
    EXPECT_EQ(KnownConvTemplate(conv_template->Name()), conv_template);
    Target cpu = CapIsa(DetectCpu(), Isa::kPortable);
    EXPECT_FALSE(conv_template->Supports(dense, cpu).ok);
    cpu.isa = Isa::kAvx2;
    const std::vector<Support> found = {conv_template->Supports(dense, cpu),
                                        conv_template->Supports(grouped, cpu),
                                        conv_template->Supports(depthwise, cpu)};
    EXPECT_EQ(std::ranges::count(found, true, &Support::ok) == 0, MultipliesTiles(*conv_template));
    for (const Support& support : found) EXPECT_EQ(support.ok, support.reason.empty());
  }
}

std::vector<Setting> Settings() {
  std::vector<Setting> settings;
  for (const ConvTemplate* conv_template : OfThisProcess()) {
    settings.push_back({conv_template, true});
    if (!MultipliesTiles(*conv_template)) settings.push_back({conv_template, false});
  }
  return settings;
}

INSTANTIATE_TEST_SUITE_P(Templates, Bf16Conv, testing::ValuesIn(Settings()), [](const auto& info) {
  return std::string(info.param.conv_template->Name()) + (info.param.instructions ? "" : "_in_steps");
});

}  // namespace
}  // namespace tilesmith::bf16_conv
