// Layout transforms: the same elements, another order, and another type where one is f32 and the other f16 or
// bf16, rounded as F16Bits and Bf16Bits (data_type.h) say. Elements are of any type otherwise, which stays:
// between layouts of other different types all of these throw Error(kBadModel).
#pragma once

#include <memory>

#include "layouts/base/kernel.h"
#include "layouts/base/target.h"
#include "layouts/tensor.h"

namespace tilesmith {

// The oracle: element by element through ElementOffset, single-threaded, any pair of layouts. The padding of
// the result is zero. Precondition: rank <= 4 or both layouts NCHW.
Tensor TransformGeneric(const Tensor& source, const Layout& to);

// What the executor runs and what the cost benchmark times: one input, one output, at memory-copy speed for
// every pair of layouts, any channel count (the output's padding is written as zeros, the input's padding is
// not read as data). Tasks are independent slabs of the output.
std::unique_ptr<Kernel> MakeTransformKernel(const Shape& shape, const Layout& from, const Layout& to,
                                            const Target& cpu);

// Whether its tasks are rows of images (TaskGrid::GivesRows). Where the order stays they are not.
bool TransformGivesRows(const Shape& shape, const Layout& from, const Layout& to);

// Convenience: allocates the result and runs the fast kernel on `threads` threads.
Tensor Transform(const Tensor& source, const Layout& to, const Target& cpu, int threads);

}  // namespace tilesmith
