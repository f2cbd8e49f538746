// Depthwise convolution: one filter per channel, any kernel size, stride, padding and dilation. A vector of
// channels at a time; register tile of output rows x columns, so that a pixel loaded once serves every tap
// that reads it; weights in registers where they fit. Original.
#pragma once

#include "templates/base/conv_template.h"

namespace tilesmith {

const ConvTemplate& DepthwiseTemplate();
// The same with input, output or both stored in bf16; arithmetic is in f32.
const ConvTemplate& DepthwiseBf16Template();

}  // namespace tilesmith
