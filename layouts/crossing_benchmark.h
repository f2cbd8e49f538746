// How long bytes take from one core to another on this machine: what the graph tuner charges where one layer
// deals its work otherwise than the next (layouts/base/split.h).
#pragma once

#include <cstdint>

namespace tilesmith {

// Seconds that a team of `threads` takes longer to read `bytes` bytes a thread when each thread's neighbour
// has just written them than when it has written them itself, at least 0: medians by turns, near or far as
// the cores are by then. 0 for one thread or no bytes. Must not run while anything else measures. Throws
// Error(kEnvironment) when memory is short.
double MeasureCrossing(int64_t bytes, int threads);

}  // namespace tilesmith
