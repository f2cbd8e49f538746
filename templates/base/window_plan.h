// How the work of a convolution over a copy of its input is cut: groups of channels, blocks of output
// channels, tiles of output pixels, and the windows of a tile as runs of numbers in the copy, which is called
// widened. There padding is written out, and all channels of a pixel are adjacent.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "layouts/base/sizes.h"
#include "layouts/base/split.h"
#include "layouts/base/target.h"
#include "ops/conv/workload.h"

namespace tilesmith {

// An instruction of AMX multiplies a tile of kTileRows positions by so many words of their windows, at most
// kTileWords, with as many words of kTileRows output channels' weights. Words are of four bytes: four bytes,
// or two bf16; sums are int32 or float.
constexpr int64_t kTileRows = 16;
constexpr int64_t kTileWords = 16;
constexpr int64_t kMaxTilePositions = 2 * kTileRows;  // that are multiplied together

// Where the second tile of some positions begins: earlier than the first one ends, where there is no whole
// one left.
constexpr int64_t SecondTile(int64_t positions) { return positions - kTileRows; }

// How its sums are made.
struct WindowForm {
  int64_t number_bytes = 1;  // of the widened input
  int64_t lanes = 1;         // output channels that are computed together
  int64_t pixels = 1;        // whose sums are in registers together; by AMX kMaxTilePositions
  bool depthwise = false;    // lanes read channels of their own
  bool amx = false;          // by tiles
  bool dots = false;         // lanes are numbers of a window, whose products are summed at the end
  int64_t group_words = 0;   // words of a pixel that each lane reads, those of its own group; 0: all of them
  // Numbers of a word, whose products are summed at once.
  int64_t word() const { return 4 / number_bytes; }
  // Whether how many pixels are in registers together can be chosen.
  bool chooses_pixels() const { return !amx && !dots && group_words == 0; }
};

// What can be chosen about it.
struct WindowCut {
  // Output pixels of a task, where images of one pixel's windows are one row; 0: such that its input stays in
  // a core's cache and each core has the same to do.
  int64_t tile_rows = 0, tile_columns = 0;
  // Pixels whose sums are in registers together; 0: the form's.
  int64_t pixels = 0;
  // Whether the tasks of a tile's output channels are neighbours, which share its widened input, or those of
  // a block of output channels, which share its weights.
  bool blocks_inner = true;
  bool operator==(const WindowCut&) const = default;
};

// Output pixels of a task, and the image and group that it is of.
struct WindowTile {
  int64_t image = 0, group = 0;
  int64_t y = 0, x = 0, rows = 0, columns = 0;
  bool operator==(const WindowTile&) const = default;
};

struct WindowPlan {
  WindowPlan(const ConvWorkload& workload, const WindowForm& form, int64_t cores, const WindowCut& cut = {});

  ConvWorkload conv;  // one row of all pixels where the windows are single pixels, each the next one
  bool depthwise, amx, dots;
  int64_t group_words;
  int64_t lanes;                // output channels of a block
  int64_t number_bytes, word;   // numbers of a word, whose products are summed at once
  int64_t groups, blocks;       // blocks of each group
  int64_t group_in, group_out;  // channels; of a depthwise conv a group is a block of channels
  int64_t pixel_numbers;        // of a pixel: its channels, and zeros where tiles want more
  int64_t run_columns;          // of a window in one run
  int64_t run_length;           // numbers, whole words
  int64_t step_words;           // of a run, that are multiplied at once
  std::vector<int32_t> runs;    // offsets in bytes

  // The widened input has every row_step-th row and column_step-th column. With AMX, where windows of several
  // rows or columns begin a stride apart, it has the others, too, in planes of their own, one for each phase,
  // so that windows are one row and one column of a plane apart. Rows and columns of a plane:
  int64_t row_step, column_step;
  int64_t row_phases = 1, column_phases = 1;
  int64_t row_stride, column_stride;  // from one output pixel to the next
  int64_t window_rows, window_columns;
  int64_t tile_rows, tile_columns;  // output pixels of a tile; the last ones have fewer
  int64_t row_tiles, column_tiles;
  int64_t pixels;            // at once
  bool blocks_inner;         // as in the cut
  int64_t pitch, row_pitch;  // bytes from column to column and from row to row

  // The windows are adjacent pixels of one row; those of groups lie side by side.
  bool single_pixels() const { return conv.g == 1 && single_grouped_pixels(); }
  bool single_grouped_pixels() const {
    return conv.oh == 1 && conv.ih == 1 && conv.kh * conv.kw * conv.sh * conv.sw == 1 && conv.ph == 0 &&
           conv.pw == 0 && conv.ow == conv.iw;
  }
  int64_t tiles() const { return row_tiles * column_tiles; }
  int64_t RowsSeenBy(int64_t rows) const { return (rows - 1) * row_stride + window_rows; }
  int64_t ColumnsSeenBy(int64_t columns) const { return (columns - 1) * column_stride + window_columns; }
  int64_t phases() const { return row_phases * column_phases; }
  int64_t PlaneBytes() const { return RowsSeenBy(tile_rows) * row_pitch; }
  // The widened input of a tile, with what a run that is no whole words reads past its end.
  int64_t TileBytes() const { return phases() * PlaneBytes() + word * number_bytes; }
  // A depthwise tile's row before its numbers are gathered with those `word_distance` further.
  int64_t GatheredRowBytes() const {
    return depthwise ? (ColumnsSeenBy(tile_columns) * lanes + (word - 1) * word_distance()) * number_bytes
                     : 0;
  }
  int64_t word_distance() const { return (conv.dw + 1) * lanes; }  // numbers
  // With tiles, from one position to the next, and how many there are from row to row where that is a whole
  // number of them, else 0.
  int64_t position_bytes() const { return column_stride * pitch; }
  int64_t row_positions() const {
    const int64_t row_bytes = row_stride * row_pitch;
    return row_bytes % position_bytes() == 0 ? row_bytes / position_bytes() : 0;
  }
  // From the tile's start to the window of each output pixel.
  std::vector<int32_t> PixelOffsets() const;
  TaskGrid Grid() const;
  // Where a task of the grid lies.
  struct Place {
    int64_t image = 0, tile = 0, group = 0, block = 0;
  };
  Place PlaceOf(int64_t task) const;
  WindowTile TileOf(const Place& place) const;
  // Part of a row of the input, every column_step-th column of it, on its way into a tile's widened input.
  struct WidenedPart {
    int64_t y = 0, left = 0;  // of the image, where it may lie outside
    int64_t columns = 0;
    int64_t offset = 0;  // bytes into the tile's
  };
  // Calls visit(WidenedPart) for what the windows of a tile read.
  template <typename Visit>
  void ForEachWidenedPart(const WindowTile& tile, const Visit& visit) const {
    for (int64_t phase = 0; phase < phases(); ++phase) {
      const int64_t row_phase = phase / column_phases, column_phase = phase % column_phases;
      for (int64_t row = 0; row < RowsSeenBy(tile.rows); ++row) {
        if (!IsRead(row_phase, row, tile.rows)) continue;
        visit(WidenedPart{.y = tile.y * conv.sh - conv.ph + row_phase + row * row_step,
                          .left = tile.x * conv.sw - conv.pw + column_phase,
                          .columns = ColumnsSeenBy(tile.columns),
                          .offset = phase * PlaneBytes() + row * row_pitch});
      }
    }
  }
  // The cut that makes this plan.
  WindowCut cut() const { return {tile_rows, tile_columns, pixels, blocks_inner}; }
  int64_t ThreadBytes() const { return RoundUp(TileBytes() + GatheredRowBytes(), 64); }

 private:
  void FormRuns();
  void FormPhases();
  // Whether windows of `rows` rows of output pixels read this row of a plane.
  bool IsRead(int64_t row_phase, int64_t row, int64_t rows) const;
  void CutIntoTiles(int64_t cores);
  void CutIntoTiles(const WindowCut& cut);
  void FindRuns();
  // Bytes from a window's beginning to the pixel so far below and to the right of it.
  int64_t RunOffset(int64_t row, int64_t column) const;

  int64_t height_, width_;  // of the output, before it became one row
};

// "" or that what each thread copies in front of its products leaves no room for weights: so many bytes of
// `what` exceed the second-level cache.
std::string WhyTooLarge(int64_t bytes, std::string_view what, const Target& cpu);

// "" or why tasks cut as in `plan`, and not as in the preset plan, are no good: their order changes nothing,
// or they are larger and leave no room for weights in the second-level cache.
std::string WhyNoGoodCut(const WindowPlan& plan, const WindowCut& preset, const Target& cpu);

// Numbers of the weights of a block of output channels.
inline int64_t BlockWeightNumbers(const WindowPlan& plan) {
  return static_cast<int64_t>(plan.runs.size()) * plan.run_length * plan.lanes;
}

// Where an output channel is computed: in which block of all groups', and in which of its lanes.
struct BlockLane {
  int64_t block = 0, lane = 0;
};
inline BlockLane BlockLaneOf(const WindowPlan& plan, int64_t channel) {
  const int64_t in_group = channel % plan.group_out;
  return {channel / plan.group_out * plan.blocks + in_group / plan.lanes, in_group % plan.lanes};
}

// Writes the weights of one output channel, [channel of the group][kh][kw], into its block's,
// [run][word][lane] words: `packed` is the first word of the channel's lane. Numbers that stand for no weight
// are zeros.
template <typename Weight, typename Number, typename Convert>
void PackWindowWeights(const WindowPlan& plan, const Weight* weights, Number* packed,
                       const Convert& convert) {
  const ConvWorkload& conv = plan.conv;
  const int64_t channels = plan.depthwise ? 1 : plan.group_in, taps = conv.kh * conv.kw;
  const int64_t pixel = plan.depthwise ? 1 : plan.pixel_numbers;
  for (int64_t i = 0; i < conv.kh; ++i) {
    for (int64_t j = 0; j < conv.kw; j += plan.run_columns) {
      int64_t c = 0, column = j;  // of the number
      const int64_t end = std::min(j + plan.run_columns, conv.kw);
      for (int64_t k = 0; k < plan.run_length; k += plan.word, packed += plan.word * plan.lanes) {
        if (column < end && c + plan.word < std::min(channels, pixel)) {  // all of it, and not the last
          for (int64_t n = 0; n < plan.word; ++n, ++c)
            packed[n] = convert(weights[c * taps + i * conv.kw + column]);
          continue;
        }
        for (int64_t n = 0; n < plan.word; ++n) {
          const bool inside = c < channels && column < end;
          packed[n] = inside ? convert(weights[c * taps + i * conv.kw + column]) : Number{0};
          if (++c == pixel) c = 0, ++column;
        }
      }
    }
  }
}

}  // namespace tilesmith
