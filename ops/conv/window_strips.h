// The positions that products by tiles (tile_products.h) compute for a tile of output pixels: windows of the
// widened input that begin a fixed number of bytes apart. Where that takes fewer tiles they go on over the ends
// of rows, and some are no output pixel's.
#pragma once

#include <algorithm>

#include "layouts/base/sizes.h"
#include "ops/conv/window_plan.h"

namespace tilesmith {

// Positions whose sums are stored before the next ones are computed: they stay in a first-level cache.
constexpr int64_t kStripPositions = 128;

struct WindowStrip {
  int64_t offset = 0;     // bytes into the tile's widened input
  int64_t positions = 0;  // at most kStripPositions
};

// Output pixels of a tile that are adjacent positions of a strip, and adjacent in a row; all rows of a tile that
// is as wide as the image count as one.
struct WindowSegment {
  int64_t position = 0;  // in the strip
  int64_t row = 0, column = 0, count = 0;
};

// Calls compute(WindowStrip) for each strip of a tile of `rows` x `columns` output pixels, and then
// store(WindowSegment) for each segment in it. Precondition: plan.amx.
template <typename Compute, typename Store>
void ForEachStrip(const WindowPlan& plan, int64_t rows, int64_t columns, const Compute& compute,
                  const Store& store) {
  int64_t row_positions = plan.row_positions();
  if (row_positions == columns && columns == plan.conv.ow) {
    columns *= rows;
    row_positions = columns;
    rows = 1;
  }
  const int64_t all = (rows - 1) * row_positions + columns;
  const bool over_ends =
      rows > 1 && row_positions > 0 && CeilDiv(all, kTileRows) <= rows * CeilDiv(columns, kTileRows);
  const int64_t lines = over_ends ? 1 : rows, line_positions = over_ends ? all : columns;
  for (int64_t line = 0; line < lines; ++line) {
    const int64_t line_offset = line * plan.row_stride * plan.row_pitch;
    for (int64_t first = 0; first < line_positions; first += kStripPositions) {
      const int64_t end = std::min(first + kStripPositions, line_positions);
      compute(WindowStrip{line_offset + first * plan.position_bytes(), end - first});
      if (!over_ends) {
        store(WindowSegment{0, line, first, end - first});
        continue;
      }
      for (int64_t row = first / row_positions; row * row_positions < end; ++row) {
        const int64_t row_first = row * row_positions;
        const int64_t begin = std::max(first, row_first), stop = std::min(end, row_first + columns);
        if (begin < stop) store(WindowSegment{begin - first, row, begin - row_first, stop - begin});
      }
    }
  }
}

}  // namespace tilesmith
