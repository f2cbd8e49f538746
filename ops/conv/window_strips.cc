#include "ops/conv/window_strips.h"

#include "layouts/base/sizes.h"

namespace tilesmith {

WindowLines::WindowLines(const WindowPlan& plan, int64_t rows, int64_t tile_columns)
    : columns(tile_columns),
      row_positions(plan.row_positions()),
      line_bytes(plan.row_stride * plan.row_pitch) {
  if (row_positions == columns && columns == plan.conv.ow) {
    columns *= rows;
    row_positions = columns;
    rows = 1;
  }
  const int64_t all = (rows - 1) * row_positions + columns;
  over_ends = rows > 1 && row_positions > 0 && CeilDiv(all, kTileRows) <= rows * CeilDiv(columns, kTileRows);
  lines = over_ends ? 1 : rows;
  line_positions = over_ends ? all : columns;
}

}  // namespace tilesmith
