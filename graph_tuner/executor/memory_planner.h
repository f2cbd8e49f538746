// Where buffers with known lifetimes lie in one arena. Values in, values out: nothing here knows networks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tilesmith {

// A buffer that holds something from step `first` to step `last`, both included.
struct BufferRequest {
  int first = 0;
  int last = 0;
  int64_t bytes = 0;
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  // in bytes, one for each request
  int64_t bytes = 0;             // of the arena
};

// Buffers whose lifetimes overlap get disjoint memory. Offsets are multiples of 64 bytes, of 4096 for buffers
// from 64 KiB on. Throws Error(kBadModel) where sizes do not fit 64 bits. Packed for one thread; for several
// in slots, if those take at most half as much memory again.
MemoryPlan PlanMemory(std::span<const BufferRequest> requests, int threads);

// Into as little memory as a greedy search finds: buffers are placed one after the other into the smallest
// gap that fits among those placed already; once largest first and once in order of time, and the smaller
// arena wins.
MemoryPlan PackMemory(std::span<const BufferRequest> requests);

// Every slot holds one buffer at a time, and all of its buffers have the same middle: largest first, each
// goes into the smallest slot that is free in its time. Threads mostly write equal shares of a buffer, the
// first one its first bytes, so each of two writes where it wrote before and not to lines that the other's
// caches hold. For these it would have to wait, the longer the farther apart the cores are: on cores of two
// complexes networks took 3 to 13% less time so than packed, on near ones as much (mobilenets, resnet18,
// densenet121, inception_v3 and the face models on an AMD EPYC, Zen 4, two threads).
MemoryPlan PlaceInSlots(std::span<const BufferRequest> requests);

}  // namespace tilesmith
