#include "templates/amx/strips.h"

#include <algorithm>

#include "templates/base/image_strides.h"

namespace tilesmith::amx {

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

TileStrips StripsOf(const WindowPlan& plan, int64_t rows, int64_t columns, int64_t pixel_bytes) {
  TileStrips tile{.rows = rows, .columns = columns, .strips = {}, .places = {}};
  ForEachStrip(
      plan, rows, columns,
      [&](const WindowStrip& strip) {
        tile.strips.push_back({strip, std::ssize(tile.places), 0});
      },
      [&](const WindowSegment& segment) {
        for (int64_t i = 0; i < segment.count; ++i) {
          const int64_t pixel = segment.row * plan.conv.ow + segment.column + i;
          tile.places.push_back({static_cast<int32_t>((segment.position + i) * plan.lanes * kSumBytes),
                                 static_cast<int32_t>(pixel * pixel_bytes)});
        }
        tile.strips.back().places += segment.count;
      });
  return tile;
}

WindowSteps StepsOf(const Schedule& s) {
  const WindowPlan& p = s.plan;
  const int64_t steps = p.run_length / p.word / p.step_words;
  WindowSteps found{.offsets = {}, .position_bytes = p.position_bytes()};
  if (s.as_it_is && !s.in.is_nhwc()) {
    const ImageStrides in(s.in, p.conv.ic, p.conv.ih, p.conv.iw);
    for (int64_t block = 0; block < steps; ++block)
      found.offsets.push_back(static_cast<int32_t>(block * in.block_bytes));
    found.position_bytes = in.pixel_bytes;
    return found;
  }
  for (const int32_t run : p.runs)
    for (int64_t step = 0; step < steps; ++step)
      found.offsets.push_back(static_cast<int32_t>(run + step * p.step_words * p.word * p.number_bytes));
  return found;
}

}  // namespace tilesmith::amx
