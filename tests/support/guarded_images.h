// Tensors of any type whose neighbourhood is unreadable, with images apart from each other, and blocks of
// channels too.
#pragma once

#include <cstring>

#include "layouts/tensor.h"
#include "tests/support/guarded_tensor.h"

namespace tilesmith {

// Images of `tensor`'s bytes, `gap` bytes further apart than they need to be, and their blocks of channels
// `block_shift` bytes, with an end at an unreadable page.
class GuardedImages {
 public:
  GuardedImages(const Shape& shape, const Layout& layout, int64_t gap, Guard guard, int64_t block_shift = 0)
      : images_(shape[0]),
        blocks_(block_shift == 0 ? 1 : layout.Blocks(shape[1])),
        block_bytes_(BatchBytes(shape, layout) / blocks_),
        block_shift_(block_shift),
        image_bytes_(blocks_ * (block_bytes_ + block_shift) - block_shift),
        stride_(image_bytes_ + gap),
        bytes_(images_ * stride_ - gap),
        memory_((bytes_ + 3) / 4, guard),
        first_(reinterpret_cast<std::byte*>(memory_.data()) +
               (guard == Guard::kAfter ? memory_.size() * 4 - bytes_ : 0)) {}

  void Fill(const Tensor& tensor) {
    for (int64_t i = 0; i < images_ * blocks_; ++i)
      std::memcpy(first_ + BlockAt(i), tensor.raw() + i * block_bytes_, static_cast<size_t>(block_bytes_));
  }
  void ReadInto(Tensor& tensor) const {
    for (int64_t i = 0; i < images_ * blocks_; ++i)
      std::memcpy(tensor.raw() + i * block_bytes_, first_ + BlockAt(i), static_cast<size_t>(block_bytes_));
  }
  // Fresh memory is all ones and zeros of NaNs; so must be what lies between blocks and images.
  bool GapsIntact() const {
    const GuardedTensor fresh(memory_.size());
    for (int64_t i = 0; i + 1 < images_ * blocks_; ++i) {
      for (int64_t byte = BlockAt(i) + block_bytes_; byte < BlockAt(i + 1); ++byte) {
        const auto* at = first_ + byte;
        const int64_t phase = (at - reinterpret_cast<const std::byte*>(memory_.data())) % 4;
        if (*at != reinterpret_cast<const std::byte*>(fresh.data())[phase]) return false;
      }
    }
    return memory_.SlackIntact();
  }
  void MakeReadOnly() { memory_.MakeReadOnly(); }
  InputView input() const { return {first_, stride_, block_shift_}; }
  OutputView output() { return {first_, stride_, block_shift_}; }

 private:
  // Of all images' blocks.
  int64_t BlockAt(int64_t block) const {
    return block / blocks_ * stride_ + block % blocks_ * (block_bytes_ + block_shift_);
  }

  int64_t images_, blocks_, block_bytes_, block_shift_, image_bytes_, stride_, bytes_;
  GuardedTensor memory_;
  std::byte* first_;
};

}  // namespace tilesmith
