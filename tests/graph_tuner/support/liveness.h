// What no plan of memory can undercut.
#pragma once

#include <algorithm>
#include <span>

#include "graph_tuner/executor/memory_planner.h"

namespace tilesmith {

// The most bytes that are live at any one step, each buffer rounded up to 64 bytes. No plan is smaller.
inline int64_t LivenessLowerBound(std::span<const BufferRequest> requests) {
  int64_t largest = 0;
  for (const BufferRequest& at : requests) {  // the maximum is reached where some buffer starts
    int64_t live = 0;
    for (const BufferRequest& request : requests)
      if (request.first <= at.first && at.first <= request.last) live += (request.bytes + 63) / 64 * 64;
    largest = std::max(largest, live);
  }
  return largest;
}

}  // namespace tilesmith
