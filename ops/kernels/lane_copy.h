// Moving channels from block to block: what concat, slice and depth-to-space share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace tilesmith {

// `pixels` runs of `count` adjacent bytes; from one run to the next it is from_step and to_step bytes.
struct LaneCopy {
  const std::byte* from;
  std::byte* to;
  int64_t from_step, to_step;
  int64_t count, pixels;
};
// The copy in bytes, of one whose counts are elements of `bytes` bytes; `from` and `to` are bytes already.
inline LaneCopy ElementLanes(LaneCopy copy, int64_t bytes) {
  return {copy.from, copy.to, copy.from_step * bytes, copy.to_step * bytes, copy.count * bytes, copy.pixels};
}
// The two must not overlap.
void CopyLanes(const LaneCopy& copy);

// Lanes [lane, lane + count) of an output block are lanes source_lane.. of an input block.
struct LaneRun {
  int64_t lane, count;
  int64_t source_block, source_lane;
};
struct LaneCounts {
  int64_t in, out;  // lanes of a block
};
// The runs that fill each output block, where output channel c is input channel source(c).
std::vector<std::vector<LaneRun>> LaneRuns(int64_t channels, const LaneCounts& lanes,
                                           const std::function<int64_t(int64_t)>& source);

}  // namespace tilesmith
