// One input element is NaN: every template and activation takes it to the outputs that read it and to no
// other, nor to padding channels. Algorithms that compute outputs together may take it to the rest of a tile.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "layouts/base/thread_team.h"
#include "layouts/transform.h"
#include "ops/conv/conv.h"
#include "templates/base/conv_template.h"
#include "tests/support/random_config.h"
#include "tests/support/random_workload.h"
#include "tests/support/template_cpu.h"

namespace tilesmith {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct NanCase {
  const ConvTemplate* conv_template;
  ConvWorkload workload;
  Config config;
  Target cpu;
};

bool DrawCase(TestRandom& random, const Activation& activation, NanCase& c) {
  for (int i = 0; i < 300; ++i) {
    const int64_t kind = random.Integer(1, 5);
    c.workload = kind == 1   ? RandomFusedWorkload(random)
                 : kind == 2 ? RandomProduct(random)
                 : kind == 3 ? RandomOrderedByTiles(random)
                             : RandomWorkload(random);
    if (!c.workload.product) c.workload.post.activation = activation;
    if (!c.conv_template->Supports(c.workload, c.cpu).ok) continue;
    const auto config = RandomValidConfig(c.conv_template->Space(c.workload, c.cpu), random, 2000);
    if (!config) continue;
    c.config = *config;
    return true;
  }
  return false;
}

Tensor Compute(const NanCase& c, const ConvData& data) {
  const ConvWorkload& w = c.workload;
  const LayoutPair layouts = c.conv_template->Layouts(w, c.config);
  const auto kernel = c.conv_template->Build(w, c.config, c.cpu, WeightsOf(data.tensors()));
  const Tensor input = TransformGeneric(data.input, layouts.in);
  const Tensor residual = w.post.sum ? TransformGeneric(*data.residual, layouts.out) : Tensor();
  Tensor output(w.output_shape(), layouts.out);
  std::fill_n(output.floats(), output.padded_size(), 1e30F);
  std::vector<InputView> inputs = {input.input_view()};
  if (w.product) inputs.push_back(data.weights.input_view());
  if (w.post.sum) inputs.push_back(residual.input_view());
  const AlignedBuffer scratch(kernel->ScratchBytes(1));
  RunKernel(*kernel, {inputs, output.output_view(), scratch.floats()}, 1);
  return output;
}

void ExpectNansOf(const Tensor& expected, const Tensor& got, const NanCase& c) {
  const bool spreads = c.conv_template->ErrorFactor(c.workload, c.config) != 1;
  const Tensor plain = TransformGeneric(got, Layout::Nchw());
  for (int64_t i = 0; i < expected.size(); ++i) {
    if (spreads && std::isnan(plain.floats()[i])) continue;
    ASSERT_EQ(std::isnan(plain.floats()[i]), std::isnan(expected.floats()[i])) << "output " << i;
  }
  // Zero padding is what a transform of the plain tensor makes.
  const Tensor padded = TransformGeneric(plain, got.layout());
  for (int64_t i = 0; i < padded.padded_size(); ++i) {
    if (padded.floats()[i] == 0) {
      ASSERT_EQ(got.floats()[i], 0) << "padding at " << i;
    }
  }
}

void CheckCase(const NanCase& c, TestRandom& random) {
  uint64_t seed = random.Next();
  ConvData data = MakeConvData(c.workload, [&seed](Tensor& tensor) {
    FillIntegers({tensor.floats(), static_cast<size_t>(tensor.size())}, ++seed);
    for (int64_t i = 0; i < tensor.size(); ++i) tensor.floats()[i] += tensor.floats()[i] == 0 ? 1 : 0;
  });
  data.input.floats()[random.Integer(0, data.input.size() - 1)] = kNan;
  ExpectNansOf(ReferenceConv(c.workload, data.tensors()), Compute(c, data), c);
}

class ConvNan : public testing::TestWithParam<const ConvTemplate*> {};

TEST_P(ConvNan, GoesToTheOutputsThatReadIt) {
  const ConvTemplate& conv_template = *GetParam();
  if (&conv_template != ConvTemplates().back() && TestCpu().isa == Isa::kPortable) GTEST_SKIP();
  if (const Support here = conv_template.RunsOn(CpuFor(conv_template)); !here.ok) GTEST_SKIP() << here.reason;
  constexpr int kCases = 10;
  TestRandom random(11);
  int ran = 0;
  for (const char* text : {"", "relu", "clip:-3:6", "clip:2:9", "clip:-inf:5", "leaky_relu:0.5",
                           "leaky_relu:2", "hard_sigmoid:0.25:0.5", "hard_swish"}) {
    for (int i = 0; i < kCases && !HasFatalFailure(); ++i) {
      NanCase c{&conv_template, {}, {}, CpuFor(conv_template)};
      if (i % 2 != 0) c.cpu = CapIsa(c.cpu, kCodeIsas[0]);
      if (!DrawCase(random, ParseActivation(text), c)) continue;
      SCOPED_TRACE(fmt::format("{} {} {} {}", conv_template.Name(), WorkloadToString(c.workload),
                               c.config.ToString(), IsaName(c.cpu.isa)));
      CheckCase(c, random);
      ++ran;
    }
  }
  EXPECT_GE(ran, kCases);
}

INSTANTIATE_TEST_SUITE_P(Templates, ConvNan, testing::ValuesIn(ConvTemplates()),
                         [](const auto& info) { return std::string(info.param->Name()); });

}  // namespace
}  // namespace tilesmith
