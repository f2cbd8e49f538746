// Convolutions without much to reuse: a thread gathers what a tile of outputs needs through the caches.
// cuda_depthwise is for one input channel a group, cuda_grouped for a few, and cuda_portable takes whatever
// has nothing fused in front of it and fits 32-bit offsets. Source: original.
#pragma once

#include "templates/base/conv_template.h"

namespace tilesmith {

const ConvTemplate& CudaDepthwiseTemplate();
const ConvTemplate& CudaGroupedTemplate();
const ConvTemplate& CudaPortableTemplate();

}  // namespace tilesmith
