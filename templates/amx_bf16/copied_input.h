// The input that a tile of pixels sees, as the amx_bf16 template multiplies it: bf16, padding written out,
// the channels of a pixel adjacent and filled up with zeros.
#pragma once

#include <cstddef>
#include <vector>

#include "templates/amx_bf16/schedule.h"

namespace tilesmith::amx_bf16 {

// Output pixels of a task.
struct PixelTile {
  int64_t image = 0, group = 0;
  int64_t y = 0, x = 0, rows = 0, columns = 0;
  bool operator==(const PixelTile&) const = default;
};

class CopiedInput {
 public:
  CopiedInput(const Schedule& schedule, const Target& cpu, const ConvWeights& weights);

  // Memory for one thread's copy: whole cache lines.
  int64_t ThreadBytes() const { return line_at_ + line_bytes_; }
  // Copies what the tile sees of `image` into `to`, ThreadBytes() of them, with the input ops applied.
  // Thread-safe.
  void Copy(const std::byte* image, const PixelTile& tile, std::byte* to) const;

 private:
  // Pixels of an input row, and where their channels lie.
  struct Pixels {
    int64_t first = 0, step = 1, count = 0;  // of the image
    int64_t block = 0;                       // of channels
    int64_t channel = 0, channels = 0;       // in the block
  };
  void CopyPart(const std::byte* image, const WindowPlan::WidenedPart& part, int64_t group, std::byte* to,
                std::byte* line) const;
  void CopyPlanes(const std::byte* image, const Pixels& pixels, uint16_t* to) const;
  void CopyPixels(const std::byte* image, const Pixels& pixels, uint16_t* to, int64_t padded,
                  std::byte* line) const;

  const Schedule schedule_;
  const Target cpu_;
  const int64_t block_;               // channels stored side by side
  int64_t line_at_, line_bytes_ = 0;  // of a thread's memory: where pixels are kept that input ops have made
  std::vector<float> scale_, shift_;
};

}  // namespace tilesmith::amx_bf16
