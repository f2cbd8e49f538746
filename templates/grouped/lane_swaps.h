// Products of grouped convs without spreading every input element over the lanes of its group.
//
// A vector of `channels` channels a group, times lane-wise weights as it is, with its lanes swapped in pairs
// (lane ^ 1) and so on, gives each lane some other channel of its group. With several sums
//   sum t [lane] = sum over s < channels / sums of x[lane ^ s] * w[output lane ^ t][input lane ^ s]
//   output[lane] = sum over t of (sum t)[lane ^ t],  t = 0, channels / sums, 2 * channels / sums ...
// so that there are channels / sums - 1 permutes an input, and sums - 1 an output, instead of one a product.
// Original.
#pragma once

#include <cstdint>
#include <vector>

namespace tilesmith::grouped {

// The most ways (s) to swap inputs: within 128 bits, where any permute takes a constant pattern.
constexpr int64_t kMaxSwaps = 4;
// The permutes' patterns: lane i of four becomes lane i ^ s, for s from 0.
constexpr uint8_t kSwapPattern[kMaxSwaps] = {0xE4, 0xB1, 0x4E, 0x1B};

// 1 (no swaps: inputs are spread), and those that leave few enough ways. Precondition: channels > 1.
inline std::vector<int64_t> SumCounts(int64_t channels) {
  std::vector<int64_t> counts = {1};
  for (int64_t sums : {2, 4, 8, 16}) {
    if (channels % sums == 0 && channels <= kMaxSwaps * sums) counts.push_back(sums);
  }
  return counts;
}

// Where the product of an output (a lane of its vector) and an input channel of its group belongs.
struct Term {
  int64_t index;  // s * sums + number of the sum; the channel where there is one sum
  int64_t lane;
};

// Preconditions: channels is a power of two unless sums is 1; both as in SumCounts.
inline Term TermOf(int64_t channels, int64_t sums, int64_t output_lane, int64_t channel) {
  if (sums == 1) return {channel, output_lane};
  const int64_t ways = channels / sums;
  const int64_t apart = output_lane % channels ^ channel;
  const int64_t sum = apart / ways;
  return {apart % ways * sums + sum, output_lane ^ sum * ways};
}

}  // namespace tilesmith::grouped
