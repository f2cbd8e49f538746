// What it costs that bytes change hands: the figures the graph tuner charges where a layer deals its work
// otherwise than the layer did that wrote its input.
//
// A line that another thread has written comes from that thread's cache, and a line that others hold has to
// be taken from them before it can be written. Both take the longer the farther apart the cores are. What is
// read so is held by two, and whoever writes there next has to take it back: reading is timed in a loop that
// does that, so its price is all that follows of it. Source: original.
#pragma once

#include <cstdint>

namespace tilesmith {

enum class Crossing {
  kRead,   // bytes that another thread has written, and that are written again afterwards
  kWrite,  // over bytes that another thread has written before
};

struct CrossingTiming {
  double read_seconds = 0, write_seconds = 0;
  double Of(Crossing crossing) const { return crossing == Crossing::kRead ? read_seconds : write_seconds; }
};

// How much longer a pass takes in which every thread of the team reads `bytes` bytes and writes as many, when
// the bytes that it reads, or writes over, are those of the next thread instead of its own. Both are 0 for
// one thread, and at least 0. Takes 50 passes or so of each kind; must not run while anything else measures.
// Precondition: bytes >= 64.
CrossingTiming MeasureCrossing(int64_t bytes, int threads);

}  // namespace tilesmith
