// The strips of positions (ops/conv/window_strips.h) that a kernel by AMX tiles computes one after the other,
// and the copy of the input that they see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/conv/window_strips.h"
#include "templates/amx/schedule.h"

namespace tilesmith::amx {

constexpr int64_t kSumBytes = 4;  // a float or an int32

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

// In the copy, or in the blocks of the input.
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
