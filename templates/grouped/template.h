// Grouped convolution with few channels a group: 2 to 32, as many in as out. A vector of output channels
// holds several whole groups, or a part of one; the input element that each lane needs is spread inside its
// group's lanes by a permute, or by a plain broadcast when a group fills vectors. Any kernel, stride, padding
// and dilation. Source: original.
#pragma once

#include "templates/base/conv_template.h"

namespace tilesmith {

const ConvTemplate& GroupedTemplate();
// The same with input, output or both stored in bf16; arithmetic is in f32.
const ConvTemplate& GroupedBf16Template();

}  // namespace tilesmith
