// The state of the caches in which a layer finds its tensors, for honest timing of anything but convs.
#pragma once

#include <cstdint>

namespace tilesmith {

// Writes the share of `bytes` bytes that falls to a thread (ShareOf), as the producer of a tensor whose
// results are that thread's leaves it. Values stay as they are. Every thread of a team calls it, for a share
// of its own; put a barrier behind.
void WriteAsProducer(void* data, int64_t bytes, int share, int threads);

}  // namespace tilesmith
