// Operators that move or mark elements and that others can express: nodes in their place.
#pragma once

#include "ops/base/op_registry.h"

namespace tilesmith {

// Tile, SpaceToDepth, CenterCropPad, OneHot, Trilu, EyeLike.
std::vector<OpImporter> RearrangeImporters();

}  // namespace tilesmith
