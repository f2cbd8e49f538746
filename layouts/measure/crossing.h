// What it costs that bytes change hands: the figures the graph tuner charges where a layer deals its work
// otherwise than the layer did that wrote its input; and that several threads read the same weights.
//
// A line that another thread has written comes from that thread's cache, and a line that others hold has to
// be taken from them before it can be written. Both take the longer the farther apart the cores are. What is
// read so is held by two, and whoever writes there next has to take it back: reading is timed in a loop that
// does that, so its price is all that follows of it. Weights that every thread reads come from memory once
// where the threads share a last-level cache, and once for each thread where they do not. Source: original.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace tilesmith {

enum class Crossing {
  kRead,     // bytes that another thread has written, and that are written again afterwards
  kWrite,    // over bytes that another thread has written before
  kWeights,  // read, that nobody writes and that are in no cache, but which another thread reads too
};
inline constexpr Crossing kCrossings[] = {Crossing::kRead, Crossing::kWrite, Crossing::kWeights};

struct CrossingTiming {
  std::array<double, std::size(kCrossings)> seconds = {};
  double Of(Crossing crossing) const { return seconds[static_cast<size_t>(crossing)]; }
};

// How much longer a pass takes in which every thread of the team reads `bytes` bytes and writes as many, when
// the bytes that it reads, or writes over, are those of the next thread instead of its own; and how much
// longer one that reads weights, when each thread reads `bytes` bytes beyond its part of them, which are all
// the others' parts. All are 0 for one thread, and at least 0. Takes 50 passes or so of each kind; must not
// run while anything else measures. Precondition: bytes >= 64.
CrossingTiming MeasureCrossing(int64_t bytes, int threads);

}  // namespace tilesmith
