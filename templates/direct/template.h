// Direct convolution, dense or in groups of more than half a vector: any kernel, stride, padding, dilation
// and channel count. Register tile of output channels x output positions, weights streamed, input elements
// broadcast. The loop structure is the usual one for NCHW[x]c (Georganas et al., "Anatomy of High-Performance
// Deep Learning Convolutions on SIMD Architectures", 2018); the tiling of edges and tails is original.
#pragma once

#include "templates/base/conv_template.h"

namespace tilesmith {

const ConvTemplate& DirectTemplate();
// The same with factors of bf16, two input channels at a time, summed in f32, on CPUs with AVX-512 BF16; on
// others the same with input, output or both stored in bf16.
const ConvTemplate& DirectBf16Template();

}  // namespace tilesmith
