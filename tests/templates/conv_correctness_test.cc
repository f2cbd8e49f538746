// Every template against the reference: random workloads and configs, integer data so that results compare
// exactly where the template sums plainly, within the derived bound where it does not (ErrorFactor).
// TILESMITH_SWEEP=N makes the sweep N cases per template long.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "layouts/base/thread_team.h"
#include "layouts/transform.h"
#include "ops/conv/conv.h"
#include "templates/base/conv_error.h"
#include "templates/base/conv_template.h"
#include "templates/matmul/config.h"
#include "templates/portable_winograd/config.h"
#include "tests/support/guarded_run.h"
#include "tests/support/magnitude.h"
#include "tests/support/random_config.h"
#include "tests/support/random_workload.h"
#include "tests/support/template_cpu.h"
#include "tests/templates/example_template.h"
#include "tests/templates/ordered_conv.h"
#include "tests/templates/rebuilt_kernel.h"

namespace tilesmith {
namespace {

struct Case {
  const ConvTemplate* conv_template;
  ConvWorkload workload;
  Config config;
  Target cpu;
  uint64_t seed = 0;
  bool by_order = false;  // whether it is held to the bits of Ordered
  std::string Text() const {
    return fmt::format("{} {} {} {} seed {}", conv_template->Name(), WorkloadToString(workload),
                       config.ToString(), IsaName(cpu.isa), seed);
  }
};

int SweepLength() { return CaseCount("TILESMITH_SWEEP", 1200); }

// Draws workloads until the template supports one: some are for rare ones only.
bool FindWorkload(TestRandom& random, Case& c) {
  constexpr int kMaxTries = 3000, kKinds = 4;
  if (c.cpu.reproducible || c.conv_template == &PortableWinogradTemplate()) {
    c.workload = RandomOrderedByTiles(random);
    if (c.conv_template->Supports(c.workload, c.cpu).ok) return true;
  }
  for (int i = 0; i < kMaxTries; ++i) {
    const int64_t kind = random.Integer(1, kKinds);
    c.workload = kind == 1   ? RandomFusedWorkload(random)
                 : kind == 2 ? RandomProduct(random)
                             : RandomWorkload(random);
    if (c.conv_template->Supports(c.workload, c.cpu).ok) return true;
  }
  return false;
}

// What the outputs of a template may be off, all alike: 0 for one that sums plainly.
double AllowedError(const Case& c, const ConvData& data) {
  const double factor = c.conv_template->ErrorFactor(c.workload, c.config);
  if (factor == 1) return 0;
  constexpr double kPostOps = 2;  // bias and residual are at most 4 each; hard_swish has slope 1.5
  return kPostOps * factor * RoundingBound(c.workload, LargestMagnitude(c.workload, data) + 8);
}

// Elements that differ by more than `allowed`, padding included; NaN where nothing was written.
void ExpectEqual(const Tensor& expected, const Tensor& allowed, const Tensor& got, const Case& c) {
  for (int64_t i = 0; i < expected.padded_size(); ++i) {
    const float want = expected.floats()[i];
    // hard_swish and hard_sigmoid round once or twice on the way.
    const float may_be_off = c.by_order ? 0 : 4e-7f * std::abs(want) + allowed.floats()[i];
    ASSERT_NEAR(want, got.floats()[i], may_be_off) << "offset " << i;
  }
}

// By the portable template of Winograd's algorithm.
Tensor OrderedByTiles(const ConvWorkload& w, const ConvTensors& tensors) {
  const Target cpu = Reproducible(CapIsa(TestCpu(), Isa::kPortable));
  Config config;
  config.Set("ic_block", 1);
  config.Set("oc_block", 1);
  config.Set("tile", OrderTile(w));
  const auto kernel = PortableWinogradTemplate().Build(w, config, cpu, WeightsOf(tensors));
  Tensor output(w.output_shape());
  std::vector<InputView> inputs = {tensors.input->input_view()};
  if (w.post.sum) inputs.push_back(tensors.residual->input_view());
  AlignedBuffer scratch(kernel->ScratchBytes(1));
  RunKernel(*kernel, {inputs, output.output_view(), scratch.floats()}, 1, Split::kEven);
  return output;
}

Tensor Ordered(const ConvWorkload& w, const ConvTensors& tensors) {
  return OrderTile(w) > 0 ? OrderedByTiles(w, tensors) : OrderedConv(w, tensors);
}

void Check(const Case& c) {
  const ConvWorkload& w = c.workload;
  TestRandom random(c.seed);
  const LayoutPair layouts = c.conv_template->Layouts(w, c.config);
  uint64_t seed = c.seed;
  const ConvData data = MakeConvData(w, [&](Tensor& tensor) {
    const std::span values(tensor.floats(), static_cast<size_t>(tensor.size()));
    c.by_order ? FillUniform(values, ++seed) : FillIntegers(values, ++seed);
  });
  const Tensor expected = c.by_order ? Ordered(w, data.tensors()) : ReferenceConv(w, data.tensors());

  const auto kernel = BuildRebuilt(*c.conv_template, w, c.config, c.cpu, WeightsOf(data.tensors()));
  const Tensor got = RunGuarded(*kernel, w, layouts, data.input, w.post.sum ? &*data.residual : nullptr,
                                random, w.product ? &data.weights : nullptr);
  for (int stage = 0; stage < kernel->Stages(); ++stage)
    EXPECT_EQ(kernel->Grid(stage).tasks(), kernel->Tasks(stage)) << "stage " << stage;
  const TaskGrid grid = c.conv_template->Grid(w, c.config, c.cpu), built = kernel->Grid(kernel->Stages() - 1);
  EXPECT_EQ(std::tie(grid.images, grid.channels, grid.rows, grid.channels_inner, grid.height, grid.row_units,
                     grid.part_units),
            std::tie(built.images, built.channels, built.rows, built.channels_inner, built.height,
                     built.row_units, built.part_units));
  Tensor allowed(w.output_shape());
  std::fill_n(allowed.floats(), allowed.size(), static_cast<float>(AllowedError(c, data)));
  ExpectEqual(TransformGeneric(expected, layouts.out), TransformGeneric(allowed, layouts.out), got, c);
}

class ConvCorrectness : public testing::TestWithParam<const ConvTemplate*> {};

void Sweep(const ConvTemplate& conv_template, const Target& cpu, bool by_order) {
  if (const Support support = conv_template.RunsOn(cpu); !support.ok)
    GTEST_SKIP() << conv_template.Name() << " " << support.reason;
  // Those by tiles are large ones.
  const bool large = &conv_template == &PortableWinogradTemplate() || cpu.reproducible;
  const int cases = large ? SweepLength() / 4 : SweepLength();
  int supported = 0;
  for (int i = 0; i < cases && !testing::Test::HasFatalFailure(); ++i) {
    Case c{&conv_template, {}, {}, cpu, static_cast<uint64_t>(i) * 16 + 5, by_order};
    TestRandom random(c.seed);
    if (i % 2 == 1) c.cpu = CapIsa(c.cpu, kCodeIsas[0]);
    if (!FindWorkload(random, c)) continue;
    const ConfigSpace space = conv_template.Space(c.workload, c.cpu);
    c.config = conv_template.Default(c.workload, c.cpu);
    ASSERT_EQ(space.WhyInvalid(c.config), "") << c.Text();
    const std::optional<Config> rows = conv_template.RowsDefault(c.workload, c.cpu);
    if (rows) {
      EXPECT_EQ(space.WhyInvalid(*rows), "") << c.Text();
    }
    if (i % 8 == 4 && rows) {
      c.config = *rows;
    } else if (i % 8 != 0) {
      const std::optional<Config> config = RandomValidConfig(space, random, 20000);
      if (!config) continue;
      c.config = *config;
    }
    ++supported;
    SCOPED_TRACE(c.Text());
    Check(c);
  }
  EXPECT_GT(supported, cases / 2);
}

TEST_P(ConvCorrectness, RandomWorkloadsAndConfigs) { Sweep(*GetParam(), CpuFor(*GetParam()), false); }

TEST_P(ConvCorrectness, AddsInTheOrder) {
  if (GetParam() == &ExampleTemplate() || GetParam() == &MatMulTemplate())
    GTEST_SKIP() << "no conv of a network";
  Sweep(*GetParam(), Reproducible(CpuFor(*GetParam())), true);
}

std::vector<const ConvTemplate*> TemplatesToTest() {
  std::vector<const ConvTemplate*> templates = ConvTemplates();
  templates.push_back(&ExampleTemplate());
  return templates;
}

INSTANTIATE_TEST_SUITE_P(Templates, ConvCorrectness, testing::ValuesIn(TemplatesToTest()),
                         [](const auto& info) { return std::string(info.param->Name()); });

}  // namespace
}  // namespace tilesmith
