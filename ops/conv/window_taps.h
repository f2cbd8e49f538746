// Which taps of a convolution's windows read the image, and which lie wholly in its padding, along one axis.
#pragma once

#include <cstdint>
#include <vector>

namespace tilesmith {

struct WindowAxis {
  int64_t outputs = 1, inputs = 1, taps = 1;
  int64_t stride = 1, tap_step = 1;  // inputs from output to output, and from tap to tap
  int64_t padding = 0;               // before the first input
};

// Outputs [first, end) whose windows read the image by the taps [tap, end_tap), at most, and each of those by
// some of them.
struct AlikeOutputs {
  int64_t first = 0, end = 0;
  int64_t tap = 0, end_tap = 0;
  bool operator==(const AlikeOutputs&) const = default;
};

// All outputs in order, neighbours by the same taps together. A window wholly in padding has the taps [0, 0).
std::vector<AlikeOutputs> OutputsByTaps(const WindowAxis& axis);

// The share of all taps that these leave out.
double SharePadded(const WindowAxis& axis, const std::vector<AlikeOutputs>& outputs);

}  // namespace tilesmith
