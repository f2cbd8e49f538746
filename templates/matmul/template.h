// Products of two matrices that the network computes, or of batches of them: plain layout, register tiles of
// any size, either side packed or read where it is. The kernel is that of ops/dense, which is built once for
// each instruction set, not generated: a config is a MatMulSchedule. Source: original.
#pragma once

#include "ops/dense/matmul.h"
#include "templates/base/conv_template.h"

namespace tilesmith {

const ConvTemplate& MatMulTemplate();

// What a config of this template says, for a product that reads and writes in a network's own strides.
MatMulSchedule MatMulScheduleOf(const Config& config);

}  // namespace tilesmith
