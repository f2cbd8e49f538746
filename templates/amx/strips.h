// The positions that kernels by AMX tiles compute for a tile of output pixels, strip by strip: windows of the
// widened input that begin a fixed number of bytes apart. Where that takes fewer tiles they go on over the
// ends of rows, and some are no output pixel's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "templates/amx/schedule.h"

namespace tilesmith::amx {

constexpr int64_t kSumBytes = 4;  // a float or an int32

// Positions that are computed at once: whole tiles but for a tile of output pixels that has none, by way of
// positions that other strips compute, too.
struct WindowStrip {
  int64_t offset = 0;     // bytes into the tile's widened input
  int64_t positions = 0;  // at most kMaxTilePositions
};

// Output pixels that are adjacent positions of a strip, and adjacent in a row; all rows of a tile that is as
// wide as the image count as one.
struct WindowSegment {
  int64_t position = 0;  // in the strip
  int64_t row = 0, column = 0, count = 0;
};

// The lines of positions of a tile of `rows` x `columns` output pixels: its rows, or one over their ends.
struct WindowLines {
  WindowLines(const WindowPlan& plan, int64_t rows, int64_t columns);

  int64_t columns;        // output pixels of a row
  int64_t row_positions;  // from row to row
  int64_t lines, line_positions;
  int64_t line_bytes;  // from line to line
  bool over_ends;      // of rows
};

// Calls compute(WindowStrip) for each strip of a tile, and store(WindowSegment) for each segment of it: every
// output pixel is in one of them. Precondition: plan.amx.
template <typename Compute, typename Store>
void ForEachStrip(const WindowPlan& plan, int64_t rows, int64_t columns, const Compute& compute,
                  const Store& store) {
  const WindowLines lines(plan, rows, columns);
  for (int64_t line = 0; line < lines.lines; ++line) {
    for (int64_t first = 0; first < lines.line_positions; first += kMaxTilePositions) {
      const int64_t count = std::min(kMaxTilePositions, lines.line_positions - first);
      const int64_t again = std::min(std::max<int64_t>(kTileRows - count, 0), first);
      compute(WindowStrip{line * lines.line_bytes + (first - again) * plan.position_bytes(), count + again});
      if (!lines.over_ends) {
        store(WindowSegment{again, line, first, count});
        continue;
      }
      for (int64_t row = first / lines.row_positions; row * lines.row_positions < first + count; ++row) {
        const int64_t row_first = row * lines.row_positions;
        const int64_t begin = std::max(first, row_first);
        const int64_t end = std::min(first + count, row_first + lines.columns);
        if (begin < end) store(WindowSegment{again + begin - first, row, begin - row_first, end - begin});
      }
    }
  }
}

// Where the sums of an output pixel are, and where they go: bytes from the strip's sums, and from the output
// of the first pixel of the tile.
struct PixelPlace {
  int32_t sums = 0, output = 0;
};

// The strips of a tile of some rows and columns of output pixels, and where its pixels go.
struct TileStrips {
  struct Strip {
    WindowStrip strip;
    int64_t first_place = 0, places = 0;
  };
  int64_t rows = 0, columns = 0;
  std::vector<Strip> strips;
  std::vector<PixelPlace> places;
};

// pixel_bytes: from one pixel of the output to the next.
TileStrips StripsOf(const WindowPlan& plan, int64_t rows, int64_t columns, int64_t pixel_bytes);

// How windows are read, the same for all strips of a kernel.
struct WindowSteps {
  std::vector<int32_t> offsets;  // bytes from a position to each step of its window
  int64_t position_bytes = 0;
};

// They lie in the copy, or in the blocks of the input.
WindowSteps StepsOf(const Schedule& schedule);

// The input that a tile of pixels sees, as its plan lays it out: padding written out, the channels of a pixel
// adjacent.
class InputCopy {
 public:
  virtual ~InputCopy() = default;
  // Memory for one thread's copy: whole cache lines.
  virtual int64_t ThreadBytes() const = 0;
  // Copies what the tile sees of `image` into `to`, ThreadBytes() of them. Thread-safe.
  virtual void Copy(const std::byte* image, const WindowTile& tile, std::byte* to) const = 0;
};

}  // namespace tilesmith::amx
