// Winograd's convolution of bytes, exact, for CPUs without products of bytes: the kernel of
// ops/quantize/quantized_winograd_kernel.h, whose fixed choices are knobs here.
#pragma once

#include "templates/base/conv_template.h"

namespace tilesmith {

const ConvTemplate& WinogradInt8Template();

}  // namespace tilesmith
