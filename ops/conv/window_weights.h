// Weights in the order in which sums over windows (window_plan.h) read them.
#pragma once

#include <algorithm>

#include "ops/conv/window_plan.h"

namespace tilesmith {

// Numbers of the weights of a block of output channels.
inline int64_t BlockWeightNumbers(const WindowPlan& plan) {
  return static_cast<int64_t>(plan.runs.size()) * plan.run_length * plan.lanes;
}

// Where an output channel is computed: in which block of all groups', and in which of its lanes.
struct BlockLane {
  int64_t block = 0, lane = 0;
};
inline BlockLane BlockLaneOf(const WindowPlan& plan, int64_t channel) {
  const int64_t in_group = channel % plan.group_out;
  return {channel / plan.group_out * plan.blocks + in_group / plan.lanes, in_group % plan.lanes};
}

// Writes the weights of one output channel, [channel of the group][kh][kw], into its block's,
// [run][word][lane] words: `packed` is the first word of the channel's lane. Numbers that stand for no weight
// are zeros.
template <typename Weight, typename Number, typename Convert>
void PackWindowWeights(const WindowPlan& plan, const Weight* weights, Number* packed,
                       const Convert& convert) {
  const ConvWorkload& conv = plan.conv;
  const int64_t channels = plan.depthwise ? 1 : plan.group_in, taps = conv.kh * conv.kw;
  const int64_t pixel = plan.depthwise ? 1 : plan.pixel_numbers;
  for (int64_t i = 0; i < conv.kh; ++i) {
    for (int64_t j = 0; j < conv.kw; j += plan.run_columns) {
      int64_t c = 0, column = j;  // of the number
      const int64_t end = std::min(j + plan.run_columns, conv.kw);
      for (int64_t k = 0; k < plan.run_length; k += plan.word, packed += plan.word * plan.lanes) {
        if (column < end && c + plan.word < std::min(channels, pixel)) {  // all of it, and not the last
          for (int64_t n = 0; n < plan.word; ++n, ++c)
            packed[n] = convert(weights[c * taps + i * conv.kw + column]);
          continue;
        }
        for (int64_t n = 0; n < plan.word; ++n) {
          const bool inside = c < channels && column < end;
          packed[n] = inside ? convert(weights[c * taps + i * conv.kw + column]) : Number{0};
          if (++c == pixel) c = 0, ++column;
        }
      }
    }
  }
}

}  // namespace tilesmith
