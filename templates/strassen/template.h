// One level of Strassen's algorithm for dense 1x1 convs: with the channels of the input and of
// the output in halves, and pixels in pairs, seven multiplications instead of eight, for eleven more
// additions of vectors that the input or output channels share.
#pragma once

#include "templates/base/conv_template.h"

namespace tilesmith {

// Name "strassen".
const ConvTemplate& StrassenTemplate();

}  // namespace tilesmith
