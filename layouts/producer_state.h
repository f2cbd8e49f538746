// The state of the caches in which a layer finds its tensors, for honest timing of anything but convs.
#pragma once

#include <cstdint>

namespace tilesmith {

// One thread's part of writing `bytes` bytes the way a producer leaves them: recently, but by another
// thread than the one whose even share they fall into. A conv splits its work by output channels and rows,
// what follows it by pixels, so in a network about as much is read from the neighbour's cache as from one's
// own; timing with every thread rereading its own lines flatters transforms and pooling by 2-5x. Values stay
// as they are. Every thread of the team calls it; put a barrier behind.
void WriteAsProducer(void* data, int64_t bytes, int thread, int threads);

}  // namespace tilesmith
