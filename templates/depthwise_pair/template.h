// A depthwise conv and a 1x1 conv fused, in either order: tile by tile, so that the middle tensor never
// leaves the cache. Depthwise first: a task computes some rows of all channels into a scratch and the 1x1
// conv from there. 1x1 first: a task computes the rows that its depthwise rows need, for some channels;
// neighbouring tasks compute the rows at their common border both. Rows and columns outside the middle tensor
// are zero, not what the first conv would make of zeros. Original.
#pragma once

#include "templates/base/conv_template.h"

namespace tilesmith {

const ConvTemplate& DepthwisePairTemplate();

}  // namespace tilesmith
