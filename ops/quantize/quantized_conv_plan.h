// How the work of a quantised convolution is cut: groups of channels, blocks of output channels, tiles of
// output pixels, and the windows of a tile as runs of numbers in the widened input.
#pragma once

#include <vector>

#include "layouts/base/sizes.h"
#include "layouts/base/split.h"
#include "layouts/base/target.h"
#include "ops/conv/workload.h"
#include "ops/quantize/quantized_conv_loops.h"

namespace tilesmith {

// What can be chosen about it.
struct QuantizedConvCut {
  // Output pixels of a task, where images of one pixel's windows are one row; 0: such that its input stays in
  // a core's cache and each core has the same to do.
  int64_t tile_rows = 0, tile_columns = 0;
  // Pixels whose sums are in registers together; 0: as many as there is room for (QuantizedConvTilePixels).
  int64_t pixels = 0;
  // Whether the tasks of a tile's output channels are neighbours, which share its widened input, or those of
  // a block of output channels, which share its weights.
  bool blocks_inner = true;
  bool operator==(const QuantizedConvCut&) const = default;
};

struct QuantizedConvPlan {
  // Precondition: workload.bytes.
  QuantizedConvPlan(const ConvWorkload& workload, const Target& cpu, const QuantizedConvCut& cut = {});

  ConvWorkload conv;  // one row of all pixels where the windows are single pixels, each the next one
  bool depthwise;
  bool vnni;                    // products of bytes: numbers are of 1 byte, else of 2
  int64_t lanes;                // output channels of a block
  int64_t number_bytes, word;   // numbers of a word, whose products are summed at once
  int64_t groups, blocks;       // blocks of each group
  int64_t group_in, group_out;  // channels; of a depthwise conv a group is a block of channels
  int64_t run_length;           // numbers, whole words
  std::vector<int32_t> runs;    // offsets in bytes

  // The widened input has every row_step-th row and column_step-th column; rows and columns in it.
  int64_t row_step, column_step;
  int64_t row_stride, column_stride;  // from one output pixel to the next
  int64_t window_rows, window_columns;
  int64_t tile_rows, tile_columns;  // output pixels of a tile; the last ones have fewer
  int64_t row_tiles, column_tiles;
  int64_t pixels;            // at once
  bool blocks_inner;         // as in the cut
  int64_t pitch, row_pitch;  // bytes from column to column and from row to row

  // The windows are adjacent pixels of one row.
  bool single_pixels() const {
    return conv.g == 1 && conv.oh == 1 && conv.ih == 1 && conv.kh * conv.kw * conv.sh * conv.sw == 1 &&
           conv.ph == 0 && conv.pw == 0 && conv.ow == conv.iw;
  }
  int64_t tiles() const { return row_tiles * column_tiles; }
  int64_t RowsSeenBy(int64_t rows) const { return (rows - 1) * row_stride + window_rows; }
  int64_t ColumnsSeenBy(int64_t columns) const { return (columns - 1) * column_stride + window_columns; }
  // The widened input of a tile, with what a run that is no whole words reads past its end.
  int64_t TileBytes() const { return RowsSeenBy(tile_rows) * row_pitch + word * number_bytes; }
  // A depthwise tile's row before its numbers are gathered with those `word_distance` further.
  int64_t GatheredRowBytes() const {
    return depthwise ? (ColumnsSeenBy(tile_columns) * lanes + (word - 1) * word_distance()) * number_bytes
                     : 0;
  }
  int64_t word_distance() const { return (conv.dw + 1) * lanes; }  // numbers
  int64_t run_columns() const { return depthwise ? word : conv.dw == 0 ? conv.kw : 1; }
  // From the tile's start to the window of each output pixel.
  std::vector<int32_t> PixelOffsets() const;
  TaskGrid Grid() const;
  // Where a task of the grid lies.
  struct Place {
    int64_t image = 0, tile = 0, group = 0, block = 0;
  };
  Place PlaceOf(int64_t task) const;
  // The cut that makes this plan.
  QuantizedConvCut cut() const { return {tile_rows, tile_columns, pixels, blocks_inner}; }
  int64_t ThreadBytes() const { return RoundUp(TileBytes() + GatheredRowBytes(), 64); }

 private:
  void CutIntoTiles(int64_t cores);
  void CutIntoTiles(const QuantizedConvCut& cut);
  void FindRuns();

  int64_t height_, width_;  // of the output, before it became one row
};

bool IsByteDepthwise(const ConvWorkload& workload);
// Whether the kernel multiplies bytes: not where weights are no bytes with a sign, and not in depthwise
// convolutions, which have another kernel for that.
bool MultipliesBytes(const ConvWorkload& workload, const Target& cpu);

// Bytes of the widened input that one output pixel sees, at least.
double WidenedWindowBytes(const ConvWorkload& workload);

}  // namespace tilesmith
