// Convolution of bytes, dense, grouped and depthwise, in any pair of layouts and on any CPU: the kernels of
// ops/quantize, whose fixed choices are knobs here. Its default is what they choose by themselves.
#pragma once

#include "templates/base/conv_template.h"

namespace tilesmith {

const ConvTemplate& DirectInt8Template();

}  // namespace tilesmith
