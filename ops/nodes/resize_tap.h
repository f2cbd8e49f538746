// What one output position of a Resize reads along one axis. In a header of its own because inner loops that
// are built per instruction set include it.
#pragma once

#include <cstdint>

namespace tilesmith {

// out = (1 - weight) * in[low] + weight * in[high]
struct ResizeTap {
  int64_t low = 0, high = 0;
  float weight = 0;  // in [0, 1]; 0 where only `low` counts
};

}  // namespace tilesmith
