// Cutting output rows into register tiles, and the input rows that a tile of several output rows reads. Pure
// arithmetic that several templates share.
#pragma once

#include <cstdint>
#include <vector>

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

// The tiles of one output row, from left to right. Edge tiles stand alone; equal neighbours inside are one
// run.
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

}  // namespace tilesmith
