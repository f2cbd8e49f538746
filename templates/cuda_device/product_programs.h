// CUDA programs of what multiplies matrices that are inputs.
#pragma once

#include <optional>

#include "ops/base/op.h"
#include "ops/dense/attention.h"
#include "ops/dense/matmul.h"
#include "templates/cuda/program.h"

namespace tilesmith::cuda {

// None where a side is no matrix, and where numbers do not fit an int. Precondition of both: floats in plain
// order.
std::optional<CudaProgram> MatMulProgram(const MatMulOp& op, const KernelRequest& request);
// Scores of all rows, the mask added, are a tensor in scratch. None where that would be too large.
std::optional<CudaProgram> AttentionProgram(const AttentionOp& op, const KernelRequest& request);

}  // namespace tilesmith::cuda
