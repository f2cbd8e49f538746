// Convolution to few output channels, 1 to 8, such as the ends of segmentation and super-resolution networks:
// reads and writes NCHW, vectorised over the width of a row, since vectors of output channels would be mostly
// empty. Any kernel, padding, dilation and vertical stride; horizontal stride 1. Source: original.
#pragma once

#include "templates/base/conv_template.h"

namespace tilesmith {

const ConvTemplate& FewOutputsTemplate();

}  // namespace tilesmith
