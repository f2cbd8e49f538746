// Which rows of an input a computation reads for some rows of its result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tilesmith {

// Rows [first, last).
struct RowRange {
  int64_t first = 0, last = 0;
  bool empty() const { return first >= last; }
  bool operator==(const RowRange&) const = default;
};

// Row r of what is computed reads rows [q - before, q - before + taps), q = floor(r * stride / rows_each), as
// far as they are in the input: an enlarged image has several rows for each of the input's.
struct RowWindow {
  int64_t stride = 1, before = 0, taps = 1, rows_each = 1;
  bool operator==(const RowWindow&) const = default;
};
// One behind the other, the last one's first; none: the same row.
using RowWindows = std::vector<RowWindow>;

// What of an input of `height` rows is read for rows of the result; none where that is none.
inline RowRange RowsRead(const RowWindows& windows, RowRange result, int64_t height) {
  if (result.empty()) return {};
  for (const RowWindow& window : windows) {
    const auto start = [&](int64_t row) {
      const int64_t scaled = row * window.stride, each = window.rows_each;
      return (scaled >= 0 ? scaled / each : -((-scaled + each - 1) / each)) - window.before;
    };
    result = {start(result.first), start(result.last - 1) + window.taps};
  }
  return {std::clamp<int64_t>(result.first, 0, height), std::clamp<int64_t>(result.last, 0, height)};
}

}  // namespace tilesmith
