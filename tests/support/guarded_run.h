// Kernels run on images apart from each other, and on blocks apart where they take such, in any number of
// threads and any split.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "layouts/base/thread_team.h"
#include "layouts/transform.h"
#include "templates/base/conv_template.h"
#include "tests/support/guarded_images.h"
#include "tests/support/random.h"

namespace tilesmith {

// What the kernel computes of plain data, in layouts.out, padding included. The residual, which may be null,
// lies in the output's own memory every other time. `right` is a product's second input.
inline Tensor RunGuarded(const ConvKernel& kernel, const ConvWorkload& w, const LayoutPair& layouts,
                         const Tensor& input, const Tensor* residual, TestRandom& random,
                         const Tensor* right = nullptr) {
  const int64_t gap = random.Integer(0, 1) * 128;
  const Guard guard = random.Integer(0, 1) == 0 ? Guard::kAfter : Guard::kBefore;
  const bool shifts = kernel.ShiftsBlocks() && random.Integer(0, 1) == 0;
  const auto shift = [&] { return shifts ? random.Integer(0, 40) * int64_t{sizeof(float)} : 0; };
  GuardedImages source(w.input_shape(), layouts.in, gap, guard, shift());
  source.Fill(TransformGeneric(input, layouts.in));
  source.MakeReadOnly();
  GuardedImages sum(w.output_shape(), layouts.out, gap, guard, shift()),
      fresh(w.output_shape(), layouts.out, gap, guard, shift());
  if (residual != nullptr) sum.Fill(TransformGeneric(*residual, layouts.out));
  GuardedImages& target = residual != nullptr && random.Integer(0, 1) == 0 ? sum : fresh;

  std::vector<InputView> inputs = {source.input()};
  std::optional<GuardedImages> multiplied;
  if (right != nullptr) {
    multiplied.emplace(right->shape(), right->layout(), gap, guard);
    multiplied->Fill(*right);
    multiplied->MakeReadOnly();
    inputs.push_back(multiplied->input());
  }
  if (residual != nullptr) inputs.push_back(sum.input());
  const int threads = random.Pick(std::vector<int>{1, 2, 2, 3, 3, 7});
  const Split split = kSplits[static_cast<size_t>(random.Integer(0, std::size(kSplits) - 1))];
  SCOPED_TRACE(testing::Message() << threads << " threads, " << SplitName(split)
                                  << (shifts ? ", shifted blocks" : ""));
  const AlignedBuffer scratch(kernel.ScratchBytes(threads));
  RunKernel(kernel, {inputs, target.output(), scratch.data()}, threads, split);
  EXPECT_TRUE(target.GapsIntact()) << "wrote outside the images";
  Tensor got(w.output_shape(), layouts.out);
  target.ReadInto(got);
  return got;
}

}  // namespace tilesmith
