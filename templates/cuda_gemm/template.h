// Dense convolutions, and groups of eight filters or more, as implicit GEMMs: cuda_direct by FFMA, in floats;
// the others by tensor cores. cuda_tensor multiplies floats, each product made of three of TF32, or, where
// that may be rounded to, of one; cuda_tensor_bf16 bf16, read and written as such or as floats;
// cuda_tensor_int8 bytes, exactly. Source: original; the stages of asynchronous copies as in NVIDIA's
// CUTLASS.
#pragma once

#include "templates/base/conv_template.h"

namespace tilesmith {

const ConvTemplate& CudaDirectTemplate();
const ConvTemplate& CudaTensorTemplate();
const ConvTemplate& CudaTensorBf16Template();
const ConvTemplate& CudaTensorInt8Template();

}  // namespace tilesmith
