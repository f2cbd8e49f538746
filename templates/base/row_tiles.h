// Cutting output rows into register tiles, and the input rows that a tile of several output rows reads. Pure
// arithmetic that several templates share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "layouts/kernel_parts.h"
#include "ops/conv/workload.h"

namespace tilesmith {

// Consecutive output positions [first, first + width), `count` times in a row.
struct TileRun {
  int first = 0;
  int width = 0;
  int count = 1;
  bool edge = false;  // some tap of some position falls outside the input row
};

struct RowCut {
  int64_t iw = 0, ow = 0;  // which may be other than the workload's: 1x1 convs recut images into rows
  int64_t width = 1;       // of a tile
  bool balance = false;    // tiles of equal width instead of full ones and a rest
};

// Calls visit with the tiles of one output row, from left to right. Edge tiles stand alone; equal neighbours
// inside are one run.
template <typename Visit>
void ForEachRun(const ConvWorkload& workload, const RowCut& cut, const Visit& visit);
// CutRow gives the same tiles as a list.
std::vector<TileRun> CutRow(const ConvWorkload& workload, const RowCut& cut);

// Output positions of a row, of the workload's own width, with a tap that falls outside the input row.
int64_t EdgePositions(const ConvWorkload& workload);

// Whether the rows of an image may be merged into longer ones: 1x1, stride 1, no padding.
bool CanFlatten(const ConvWorkload& workload);
// The workload with images recut into rows of `width` pixels; itself when width is 0. Precondition:
// CanFlatten and width divides the image, or width is 0.
ConvWorkload Flattened(ConvWorkload workload, int64_t width);
// Widths worth trying: 0, the whole image, and fractions of it longer than its own rows.
std::vector<int64_t> LongerRowWidths(const ConvWorkload& workload);

// One input row of a tile of several output rows, and where it counts.
struct InputRow {
  struct Tap {
    int output_row;  // within the tile
    int kernel_row;
  };
  int64_t offset = 0;  // input row, relative to the first kernel row of the tile's first output row
  std::vector<Tap> taps;
};

// Every input row that `output_rows` neighbouring output rows read, ascending.
std::vector<InputRow> InputRowsOf(const ConvWorkload& workload, int64_t output_rows);

// Bit i is set when rows[i] lies inside an input of `ih` rows; `top` is the input row that offset 0 stands
// for. Precondition: at most kMaxInputRows rows.
constexpr size_t kMaxInputRows = 64;
uint64_t RowsInside(const std::vector<InputRow>& rows, int64_t top, int64_t ih);

// The position after the last one whose last tap is inside an input row of `iw`; 0 when none is.
inline int64_t InsideEnd(const ConvWorkload& w, int64_t iw) {
  const int64_t last_tap =
      iw - 1 + w.pw - (w.kw - 1) * (w.dw + 1);  // of a position's first tap, before padding
  return last_tap < 0 ? 0 : last_tap / w.sw + 1;
}

// Whether what a kernel column meets at a position of a tile is inside an input row of `iw`.
inline bool IsInside(const ConvWorkload& w, int64_t iw, const TileRun& tile, int64_t position,
                     int64_t column) {
  const int64_t in_column = (tile.first + position) * w.sw - w.pw + column * (w.dw + 1);
  return !tile.edge || (in_column >= 0 && in_column < iw);
}

// Adds the kinds of these tiles, all that code knows of them that is given their counts.
void AddTileKinds(const ConvWorkload& workload, int64_t iw, std::span<const TileRun> tiles, PartKey& key);

template <typename Visit>
void ForEachRun(const ConvWorkload& w, const RowCut& cut, const Visit& visit) {
  const int64_t reach = (w.kw - 1) * (w.dw + 1);
  const int64_t inside_end = InsideEnd(w, cut.iw);
  const auto is_edge = [&](int64_t first, int64_t width) {
    return first * w.sw - w.pw < 0 || (first + width - 1) * w.sw - w.pw + reach >= cut.iw;
  };
  const int64_t count = (cut.ow + cut.width - 1) / cut.width;
  int64_t first = 0;
  for (int64_t i = 0; i < count;) {
    const int64_t wider = cut.balance ? cut.ow % count : 0;  // so many tiles are one wider
    const int64_t width = cut.balance ? cut.ow / count + (i < wider) : std::min(cut.width, cut.ow - first);
    const bool edge = is_edge(first, width);
    int64_t equal = 1;
    if (!edge) {
      const int64_t as_wide = !cut.balance ? (cut.ow - first) / width : i < wider ? wider - i : count - i;
      equal = std::min(as_wide, (inside_end - first) / width);
    }
    visit(TileRun{static_cast<int>(first), static_cast<int>(width), static_cast<int>(equal), edge});
    first += equal * width;
    i += equal;
  }
}

}  // namespace tilesmith
