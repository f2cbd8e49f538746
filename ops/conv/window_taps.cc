#include "ops/conv/window_taps.h"

#include <algorithm>

#include "layouts/base/sizes.h"

namespace tilesmith {

std::vector<AlikeOutputs> OutputsByTaps(const WindowAxis& axis) {
  std::vector<AlikeOutputs> alike;
  for (int64_t output = 0; output < axis.outputs; ++output) {
    const int64_t begin = output * axis.stride - axis.padding;  // of the window
    int64_t tap = begin < 0 ? std::min(CeilDiv(-begin, axis.tap_step), axis.taps) : 0;
    int64_t end_tap =
        begin < axis.inputs ? std::min(CeilDiv(axis.inputs - begin, axis.tap_step), axis.taps) : 0;
    if (tap >= end_tap) tap = end_tap = 0;
    if (!alike.empty() && alike.back().tap == tap && alike.back().end_tap == end_tap) {
      alike.back().end = output + 1;
    } else {
      alike.push_back({output, output + 1, tap, end_tap});
    }
  }
  return alike;
}

double SharePadded(const WindowAxis& axis, const std::vector<AlikeOutputs>& outputs) {
  int64_t read = 0;
  for (const AlikeOutputs& some : outputs) read += (some.end - some.first) * (some.end_tap - some.tap);
  return 1 - static_cast<double>(read) / static_cast<double>(axis.outputs * axis.taps);
}

}  // namespace tilesmith
