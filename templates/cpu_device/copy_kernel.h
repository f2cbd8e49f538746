// Copying a tensor from one place to another, in the same layout.
#pragma once

#include <memory>

#include "layouts/base/kernel.h"

namespace tilesmith {

// One input, one output, `images` runs of `image_bytes` contiguous bytes each, at the views' batch strides.
// The two must not overlap. Tasks are chunks of whole cache lines.
std::unique_ptr<Kernel> MakeCopyKernel(int64_t images, int64_t image_bytes);

}  // namespace tilesmith
