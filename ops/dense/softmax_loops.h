// The inner loop of softmax, one build per instruction set.
#pragma once

#include <cstdint>

#include "layouts/base/isa_dispatch.h"

namespace tilesmith {

// out = exp(in - max(in)) / sum(exp(in - max(in))) over `count` floats; out may be in
TILESMITH_DECLARE_ISA(void SoftmaxRow(const float* in, float* out, int64_t count))

}  // namespace tilesmith
