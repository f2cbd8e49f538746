// Winograd convolution, F(2 x 2), F(4 x 4) and F(6 x 6), for groups of 2 to 16 channels: 3x3, stride 1 or 2.
// The transforms are those of the Winograd template; the products are made in place, a vector of several
// groups at a time, so that all of a block of tiles stays in the first-level cache. Source: original.
#pragma once

#include "templates/base/conv_template.h"

namespace tilesmith {

// Name "grouped_winograd".
const ConvTemplate& GroupedWinogradTemplate();

}  // namespace tilesmith
