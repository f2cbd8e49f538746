// One conv by one template against the reference, in exact arithmetic: for the tests of single templates,
// which pick shapes that the random sweep rarely meets.
#pragma once

#include <gtest/gtest.h>

#include "layouts/base/thread_team.h"
#include "layouts/transform.h"
#include "ops/conv/conv.h"
#include "templates/base/conv_template.h"
#include "tests/support/random.h"
#include "tests/support/test_cpu.h"

namespace tilesmith {

inline Tensor IntegerTensorOf(const Shape& shape, uint64_t seed) {
  Tensor tensor(shape);
  FillIntegers({tensor.floats(), static_cast<size_t>(tensor.size())}, seed);
  return tensor;
}

// Precondition: activations without rounding.
inline void ExpectExact(const ConvTemplate& conv_template, const ConvWorkload& w, const Config& config,
                        const Target& cpu) {
  SCOPED_TRACE(WorkloadToString(w) + " " + config.ToString() + " " + std::string(IsaName(cpu.isa)));
  const LayoutPair layouts = conv_template.Layouts(w, config);
  uint64_t seed = 0;
  const ConvData data =
      MakeConvData(w, [&seed](Tensor& tensor) { tensor = IntegerTensorOf(tensor.shape(), ++seed); });
  const Tensor expected = TransformGeneric(ReferenceConv(w, data.tensors()), layouts.out);
  const Tensor source = TransformGeneric(data.input, layouts.in);
  const Tensor sum = w.post.sum ? TransformGeneric(*data.residual, layouts.out) : Tensor();
  Tensor output(w.output_shape(), layouts.out);
  std::fill_n(output.floats(), output.padded_size(), -999.0F);

  const auto kernel = conv_template.Build(w, config, cpu, WeightsOf(data.tensors()));
  const InputView inputs[] = {source.input_view(), w.post.sum ? sum.input_view() : InputView()};
  AlignedBuffer scratch(kernel->ScratchBytes(2));
  RunKernel(*kernel, {{inputs, w.post.sum ? 2U : 1U}, output.output_view(), scratch.floats()}, 2);
  for (int64_t i = 0; i < expected.padded_size(); ++i)
    ASSERT_EQ(expected.floats()[i], output.floats()[i]) << "offset " << i;
}

// The default config and `count` random valid ones, with every instruction set that code is generated for and
// this machine has. Expects every workload to be supported.
inline void ExpectExactOnEveryIsa(const ConvTemplate& conv_template, const std::string& text, int count) {
  const ConvWorkload w = ParseWorkload(text);
  for (const Isa isa : kCodeIsas) {
    if (!Includes(TestCpu().isa, isa)) continue;
    const Target cpu = CapIsa(TestCpu(), isa);
    const Support support = conv_template.Supports(w, cpu);
    ASSERT_TRUE(support.ok) << text << ": " << support.reason;
    const ConfigSpace space = conv_template.Space(w, cpu);
    ExpectExact(conv_template, w, conv_template.Default(w, cpu), cpu);
    TestRandom random(7);
    for (int tried = 0; tried < count;) {
      const uint64_t index = random.Next() % space.size();
      if (!space.IsValid(index)) continue;
      ++tried;
      ExpectExact(conv_template, w, space.At(index), cpu);
    }
  }
}

}  // namespace tilesmith
