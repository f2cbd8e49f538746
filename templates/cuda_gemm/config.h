// Dense convolutions, and groups of eight filters or more, as implicit GEMMs: cuda_direct by FFMA, in floats;
// the others by tensor cores. cuda_tensor multiplies floats, each product made of three of TF32, or, where
// that may be rounded to, of one; cuda_tensor_bf16 bf16, read and written as such or as floats;
// cuda_tensor_int8 bytes, exactly. Source: original; the stages of asynchronous copies as in NVIDIA's
// CUTLASS.
//
// The knobs of cuda_direct and of the templates on tensor cores, read once from a Config, and which workloads
// they are for.
#pragma once

#include "layouts/base/target.h"
#include "templates/base/conv_template.h"
#include "templates/cuda_gemm/product.h"

namespace tilesmith {
namespace cuda_gemm {

Product ReadDirect(const ConvWorkload& workload, const Config& config, const Target& target);
Product ReadTensor(const ConvWorkload& workload, const Config& config, const Target& target);

Config DirectDefault(const ConvWorkload& workload, const Target& target);
Config TensorDefault(const ConvWorkload& workload, const Target& target);

// What a product takes on a GPU, well enough to choose a schedule before anything was measured.
//
// Cycles of a multiprocessor, weights and input not in its caches. Its blocks take steps of tile_rc, each as
// long as multiplying takes, copying, or waiting for memory; several blocks at a time hide each other's
// waiting. Fitted to 1,173 schedules of resnet and mobilenet layers on an H200, from which it is off by 10%
// in the mean. Precondition: the product is valid there.
double EstimatedCycles(const Product& product, const Target& target);

}  // namespace cuda_gemm

const ConvTemplate& CudaDirectTemplate();
const ConvTemplate& CudaTensorTemplate();
const ConvTemplate& CudaTensorBf16Template();
const ConvTemplate& CudaTensorInt8Template();
}  // namespace tilesmith
