// Kernels run on images apart from each other, in any number of threads and any split.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "layouts/base/thread_team.h"
#include "layouts/transform.h"
#include "templates/base/conv_template.h"
#include "tests/support/guarded_images.h"
#include "tests/support/random.h"

namespace tilesmith {

// What the kernel computes of plain data, in layouts.out, padding included. The residual, which may be null,
// lies in the output's own memory every other time.
inline Tensor RunGuarded(const ConvKernel& kernel, const ConvWorkload& w, const LayoutPair& layouts,
                         const Tensor& input, const Tensor* residual, TestRandom& random) {
  const int64_t gap = random.Integer(0, 1) * 128;
  const Guard guard = random.Integer(0, 1) == 0 ? Guard::kAfter : Guard::kBefore;
  GuardedImages source(w.input_shape(), layouts.in, gap, guard);
  source.Fill(TransformGeneric(input, layouts.in));
  source.MakeReadOnly();
  GuardedImages sum(w.output_shape(), layouts.out, gap, guard),
      fresh(w.output_shape(), layouts.out, gap, guard);
  if (residual != nullptr) sum.Fill(TransformGeneric(*residual, layouts.out));
  GuardedImages& target = residual != nullptr && random.Integer(0, 1) == 0 ? sum : fresh;

  const InputView inputs[] = {source.input(), sum.input()};
  const int threads = random.Pick(std::vector<int>{1, 2, 2, 3, 3, 7});
  const Split split = kSplits[static_cast<size_t>(random.Integer(0, std::size(kSplits) - 1))];
  const AlignedBuffer scratch(kernel.ScratchBytes(threads));
  RunKernel(kernel, {{inputs, residual != nullptr ? 2U : 1U}, target.output(), scratch.data()}, threads,
            split);
  EXPECT_TRUE(target.GapsIntact()) << "wrote outside the images";
  Tensor got(w.output_shape(), layouts.out);
  target.ReadInto(got);
  return got;
}

}  // namespace tilesmith
