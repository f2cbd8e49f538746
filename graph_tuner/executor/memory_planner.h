// Where buffers with known lifetimes lie in one arena. Values in, values out: nothing here knows networks.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tilesmith {

// A buffer that holds something from step `first` to step `last`, both included.
struct BufferRequest {
  int first = 0;
  int last = 0;
  size_t bytes = 0;
};

struct MemoryPlan {
  std::vector<size_t> offsets;  // in bytes, one for each request
  size_t bytes = 0;             // of the arena
};

// Buffers whose lifetimes overlap get disjoint memory. Offsets are multiples of 64 bytes, of 4096 for buffers
// from 64 KiB on. Greedy: buffers are placed one after the other into the smallest gap that fits among those
// placed already; once largest first and once in order of time, and the smaller arena wins.
MemoryPlan PlanMemory(std::span<const BufferRequest> requests);

// The most bytes that are live at any one step, each buffer rounded up to 64 bytes. No plan is smaller.
size_t LivenessLowerBound(std::span<const BufferRequest> requests);

}  // namespace tilesmith
