// 3x3 convolutions of stride 1 or 2 by Winograd's algorithm, F(2) and F(4), on a CUDA device: windows of the
// input are transformed, multiplied point by point as cuda_direct's products, and transformed back. Matrices
// and sources: templates/winograd/transforms.h.
#pragma once

#include "templates/base/conv_template.h"

namespace tilesmith {

const ConvTemplate& CudaWinogradTemplate();

}  // namespace tilesmith
