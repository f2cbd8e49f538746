#include "ops/kernels/lane_copy.h"

#include <cstring>

namespace tilesmith {
namespace {

// A count the compiler knows becomes a few moves instead of a call.
template <int64_t kCount>
void CopyFixed(const LaneCopy& c) {
  for (int64_t p = 0; p < c.pixels; ++p) std::memcpy(c.to + p * c.to_step, c.from + p * c.from_step, kCount);
}

// At least four: the last four may be copied twice.
void CopyFew(const LaneCopy& c) {
  constexpr int64_t kPart = 4;
  for (int64_t p = 0; p < c.pixels; ++p) {
    std::byte* const to = c.to + p * c.to_step;
    const std::byte* const from = c.from + p * c.from_step;
    for (int64_t l = 0; l + kPart < c.count; l += kPart) std::memcpy(to + l, from + l, kPart);
    std::memcpy(to + c.count - kPart, from + c.count - kPart, kPart);
  }
}

void CopyMany(const LaneCopy& c) {
  for (int64_t p = 0; p < c.pixels; ++p) std::memcpy(c.to + p * c.to_step, c.from + p * c.from_step, c.count);
}

}  // namespace

void CopyLanes(const LaneCopy& c) {
  if (c.count == c.from_step && c.count == c.to_step) {
    std::memcpy(c.to, c.from, c.pixels * c.count);
    return;
  }
  switch (c.count) {
    case 0:
      return;
    case 1:
      return CopyFixed<1>(c);
    case 2:
      return CopyFixed<2>(c);
    case 3:
      return CopyFixed<3>(c);
    case 4:
      return CopyFixed<4>(c);
    case 8:
      return CopyFixed<8>(c);
    case 16:
      return CopyFixed<16>(c);
    case 32:
      return CopyFixed<32>(c);
    case 64:
      return CopyFixed<64>(c);
    default:
      return c.count < 128 ? CopyFew(c) : CopyMany(c);
  }
}

std::vector<std::vector<LaneRun>> LaneRuns(int64_t channels, const LaneCounts& lanes,
                                           const std::function<int64_t(int64_t)>& source) {
  std::vector<std::vector<LaneRun>> blocks(channels == 0 ? 0 : (channels + lanes.out - 1) / lanes.out);
  for (int64_t c = 0; c < channels; ++c) {
    std::vector<LaneRun>& runs = blocks[c / lanes.out];
    const LaneRun next{c % lanes.out, 1, source(c) / lanes.in, source(c) % lanes.in};
    if (!runs.empty() && runs.back().source_block == next.source_block &&
        runs.back().source_lane + runs.back().count == next.source_lane) {
      ++runs.back().count;
    } else {
      runs.push_back(next);
    }
  }
  return blocks;
}

}  // namespace tilesmith
