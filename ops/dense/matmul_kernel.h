// The kernels of batched matrix products and of attention, in plain layout.
#pragma once

#include <memory>

#include "ops/dense/attention.h"
#include "ops/dense/matmul.h"

namespace tilesmith {

// MatMulOp's formula, by the schedule of its parameters.
std::unique_ptr<Kernel> MakeMatMulKernel(const KernelRequest& request, const MatMulParams& params);
// AttentionOp's formula. Tasks are blocks of rows of one head; their scores are made for a block of keys at a
// time and never leave the cache, by the online softmax of Milakov and Gimelshein (2018).
std::unique_ptr<Kernel> MakeAttentionKernel(const KernelRequest& request, const AttentionParams& params);

}  // namespace tilesmith
