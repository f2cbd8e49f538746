#pragma once

#include "layouts/base/split.h"
#include "tests/support/random.h"

namespace tilesmith {

// A grid of tasks whose images, channels and height are at least `least`, which may be 0.
inline TaskGrid RandomGrid(TestRandom& random, int64_t least) {
  TaskGrid grid;
  grid.images = random.Integer(least, 3);
  grid.channels = random.Integer(least, 6);
  grid.channels_inner = random.Integer(0, 1) == 1;
  grid.height = random.Integer(least, 12);
  grid.row_units = random.Integer(1, 5);
  grid.part_units = random.Integer(1, 9);
  grid.rows = (grid.height * grid.row_units + grid.part_units - 1) / grid.part_units;
  return grid;
}

}  // namespace tilesmith
