// The portable template on shapes meant to break it, on every instruction set this machine can emulate, in
// every pair of layouts. Data are small integers, so results compare exactly.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "layouts/base/thread_team.h"
#include "layouts/transform.h"
#include "ops/conv/conv.h"
#include "templates/portable/config.h"
#include "tests/support/guarded_tensor.h"
#include "tests/support/random.h"
#include "tests/support/test_cpu.h"

namespace tilesmith {
namespace {

const char* const kWorkloads[] = {
    "mb1ic1ih1oc1kh1",                                      // the smallest
    "mb2ic17ih5iw9oc15oh5ow9kh3ph1+bias",                   // around one block
    "mb1ic16ih6iw33oc33oh6ow33kh3ph1+sum+relu",             // a row of 33, padding channels
    "mb1ic3ih11oc20oh4kh3sh3ph1+bias+clip:2:9",             // an activation that is not 0 at 0
    "mb1ic5ih4oc7oh3kh2sh3ph2+bias+hard_sigmoid:0.25:0.5",  // stride beyond the kernel
    "mb1ic8ih12oc9oh12kh3ph2dh1+leaky_relu:0.5",            // dilation
    "mb2ic12ih9iw8oc12oh9ow8kh3kw1ph1pw0+bias",             // asymmetric kernel
    "mb1ic4ih3oc4oh5kh5ph3",                                // a kernel larger than its input
    "mb1ic20ih7oc36oh7kh1+bias+sum+relu",                   // 1x1
    "g4mb1ic12ih7oc20oh7kh3ph1+bias",                       // groups that do not fill blocks
    "g3mb1ic9ih6iw35oc3oh6ow35kh3ph1+sum",                  // one output channel a group
    "g19mb2ic19ih8oc19oh8kh3ph1+bias+relu",                 // depthwise, a prime
    "g40mb1ic40ih9oc40oh5kh3sh2ph1+bias+sum+clip:1:8",      // depthwise, strided, half a block
    "g8mb1ic8ih5oc24oh5kh3ph1+bias",                        // channel multiplier
};

Tensor IntegerTensor(const Shape& shape, uint64_t seed) {
  Tensor tensor(shape);
  TestRandom random(seed);
  std::generate_n(tensor.floats(), tensor.size(), [&] { return static_cast<float>(random.Integer(-4, 4)); });
  return tensor;
}

struct Problem {
  explicit Problem(const ConvWorkload& w)
      : workload(w),
        input(IntegerTensor(w.input_shape(), 1)),
        weights(IntegerTensor(w.weights_shape(), 2)),
        bias(IntegerTensor({w.oc}, 3)),
        residual(IntegerTensor(w.output_shape(), 4)),
        expected(ReferenceConv(w, input, weights, w.post.bias ? &bias : nullptr,
                               w.post.sum ? &residual : nullptr)) {}

  const ConvWorkload workload;
  const Tensor input, weights, bias, residual, expected;
};

void Check(const Problem& problem, const Config& config, const Target& cpu, bool in_place) {
  const ConvWorkload& w = problem.workload;
  const ConvTemplate& portable = PortableTemplate();
  const LayoutPair layouts = portable.Layouts(w, config);
  const auto kernel = portable.Build(
      w, config, cpu, {problem.weights.floats(), w.post.bias ? problem.bias.floats() : nullptr});
  Tensor source = TransformGeneric(problem.input, layouts.in);
  const Tensor residual = TransformGeneric(problem.residual, layouts.out);
  const Tensor expected = TransformGeneric(problem.expected, layouts.out);
  GuardedTensor in(source.padded_size());
  std::copy_n(source.floats(), source.padded_size(), in.data());
  in.MakeReadOnly();
  GuardedTensor out(expected.padded_size());
  const int64_t image = BatchStride(w.output_shape(), layouts.out);
  InputView sum = residual.input_view();
  if (in_place) {
    std::copy_n(residual.floats(), residual.padded_size(), out.data());
    sum = out.input_view(image);
  }
  constexpr int kThreads = 2;
  AlignedBuffer scratch(kernel->ScratchBytes(kThreads));
  std::fill_n(scratch.floats(), scratch.bytes() / sizeof(float), std::numeric_limits<float>::quiet_NaN());
  const InputView inputs[] = {in.input_view(BatchStride(w.input_shape(), layouts.in)), sum};
  RunKernel(*kernel, {{inputs, w.post.sum ? 2u : 1u}, out.output_view(image), scratch.floats()}, kThreads);
  for (int64_t i = 0; i < out.size(); ++i) {
    // Exact but for the roundings of an activation's own slope.
    const float want = expected.floats()[i];
    ASSERT_NEAR(out[i], want, 4e-7f * std::abs(want)) << "offset " << i;
  }
  EXPECT_TRUE(out.SlackIntact());
}

std::vector<Isa> Isas() {
  std::vector<Isa> isas;
  for (const Isa isa : kIsas) {
    if (isa <= TestCpu().isa) isas.push_back(isa);
  }
  return isas;
}

TEST(PortableTemplate, EqualsTheReferenceInEveryPairOfLayouts) {
  const ConvTemplate& portable = PortableTemplate();
  for (const char* text : kWorkloads) {
    const Problem problem(ParseWorkload(text));
    TestRandom random(5);
    std::set<std::string> seen;
    // Every pair of blocks in either form; instruction set and other knobs at random.
    for (int i = 0; i < 2000; ++i) {
      const Target cpu = CapIsa(TestCpu(), random.Pick(Isas()));
      const ConfigSpace space = portable.Space(problem.workload, cpu);
      const Config config = space.At(random.Next() % space.size());
      const std::string kind =
          fmt::format("{} {} {}", config.Get("ic_block"), config.Get("oc_block"), config.Get("vector_over"));
      if (!space.WhyInvalid(config).empty() || !seen.insert(kind).second) continue;
      SCOPED_TRACE(fmt::format("{} {} {}", text, config.ToString(), IsaName(cpu.isa)));
      Check(problem, config, cpu, problem.workload.post.sum && random.Integer(0, 1) == 0);
      if (HasFatalFailure()) return;
    }
    EXPECT_GE(seen.size(), 18u) << "three blocks a side, two forms: " << text;
  }
}

TEST(PortableTemplate, EveryTileWidthAndRowCountIsRight) {
  const ConvTemplate& portable = PortableTemplate();
  const Problem problem(ParseWorkload("mb1ic9ih7iw29oc18oh7ow29kh3ph1+bias+sum+relu"));
  for (Isa isa : Isas()) {
    const Target cpu = CapIsa(TestCpu(), isa);
    const ConfigSpace space = portable.Space(problem.workload, cpu);
    for (uint64_t index = 0; index < space.size(); ++index) {
      const Config config = space.At(index);
      if (config.Get("ic_block") != 8 || config.Get("oc_block") != 16 || !space.WhyInvalid(config).empty())
        continue;
      SCOPED_TRACE(fmt::format("{} {}", config.ToString(), IsaName(isa)));
      Check(problem, config, cpu, false);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(PortableTemplate, SupportsEverythingWithAValidDefault) {
  const ConvTemplate& portable = PortableTemplate();
  for (const char* text : kWorkloads) {
    const ConvWorkload workload = ParseWorkload(text);
    for (Isa isa : Isas()) {
      const Target cpu = CapIsa(TestCpu(), isa);
      EXPECT_TRUE(portable.Supports(workload, cpu).ok);
      const Config config = portable.Default(workload, cpu);
      EXPECT_EQ(portable.Space(workload, cpu).WhyInvalid(config), "") << text;
    }
  }
  EXPECT_EQ(ConvTemplates().back()->Name(), "portable") << "the last resort";
}

}  // namespace
}  // namespace tilesmith
