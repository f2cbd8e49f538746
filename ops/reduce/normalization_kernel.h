// Kernels of normalizations, in plain layout.
#pragma once

#include <memory>

#include "ops/base/op.h"
#include "ops/reduce/normalization.h"

namespace tilesmith {

// Whether what is normalized together is adjacent in memory, and within an image.
bool HasNormalizationKernel(const Shape& shape, const Normalization& normalization);
// NormalizationOp's formula. Precondition: HasNormalizationKernel. A task is what is normalized together.
std::unique_ptr<Kernel> MakeNormalizationKernel(const KernelRequest& request,
                                                const Normalization& normalization);

}  // namespace tilesmith
