// Dense convolutions, and groups of eight filters or more, as implicit GEMMs: cuda_direct by FFMA, in floats;
// cuda_tensor by tensor cores, each product of floats made of three of TF32, or, where that may be rounded
// to, of one. Source: original; the stages of asynchronous copies as in NVIDIA's CUTLASS.
#pragma once

#include "templates/base/conv_template.h"

namespace tilesmith {

const ConvTemplate& CudaDirectTemplate();
const ConvTemplate& CudaTensorTemplate();

}  // namespace tilesmith
