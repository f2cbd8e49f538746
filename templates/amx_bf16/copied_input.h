// The input that a tile of pixels sees, as the amx_bf16 template multiplies it: bf16, padding written out,
// the channels of a pixel adjacent and filled up with zeros.
#pragma once

#include <cstddef>

#include "layouts/kernel_parts.h"
#include "templates/amx/strips.h"
#include "templates/amx_bf16/config.h"

namespace tilesmith::amx_bf16 {

class CopiedInput final : public amx::InputCopy {
 public:
  CopiedInput(const Schedule& schedule, const Target& cpu, const ConvWeights& weights);

  int64_t ThreadBytes() const override { return line_at_ + line_bytes_; }
  // With the input ops applied.
  void Copy(const std::byte* image, const WindowTile& tile, std::byte* to) const override;

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
  SharedBuffer scale_, shift_;
};

}  // namespace tilesmith::amx_bf16
