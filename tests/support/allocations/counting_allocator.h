// Replaces operator new and aligned_alloc of the test binary it is linked into, through which everything in
// this project allocates, by ones that count.
#pragma once

#include <cstdint>

namespace tilesmith {

// By all threads.
int64_t AllocationsSoFar();

}  // namespace tilesmith
