// Tensors of any type whose neighbourhood is unreadable, with images apart from each other.
#pragma once

#include <cstring>

#include "layouts/tensor.h"
#include "tests/support/guarded_tensor.h"

namespace tilesmith {

// Images of `tensor`'s bytes, `gap` bytes further apart than they need to be, with an end at an unreadable
// page.
class GuardedImages {
 public:
  GuardedImages(const Shape& shape, const Layout& layout, int64_t gap, Guard guard)
      : images_(shape[0]),
        image_bytes_(BatchBytes(shape, layout)),
        stride_(image_bytes_ + gap),
        bytes_(images_ * stride_ - gap),
        memory_((bytes_ + 3) / 4, guard),
        first_(reinterpret_cast<std::byte*>(memory_.data()) +
               (guard == Guard::kAfter ? memory_.size() * 4 - bytes_ : 0)) {}

  void Fill(const Tensor& tensor) {
    for (int64_t n = 0; n < images_; ++n)
      std::memcpy(first_ + n * stride_, tensor.raw() + n * image_bytes_, static_cast<size_t>(image_bytes_));
  }
  void ReadInto(Tensor& tensor) const {
    for (int64_t n = 0; n < images_; ++n)
      std::memcpy(tensor.raw() + n * image_bytes_, first_ + n * stride_, static_cast<size_t>(image_bytes_));
  }
  // Fresh memory is all ones and zeros of NaNs; so must be what lies between images.
  bool GapsIntact() const {
    const GuardedTensor fresh(memory_.size());
    for (int64_t n = 0; n + 1 < images_; ++n) {
      for (int64_t i = image_bytes_; i < stride_; ++i) {
        const auto* at = first_ + n * stride_ + i;
        const int64_t phase = (at - reinterpret_cast<const std::byte*>(memory_.data())) % 4;
        if (*at != reinterpret_cast<const std::byte*>(fresh.data())[phase]) return false;
      }
    }
    return memory_.SlackIntact();
  }
  void MakeReadOnly() { memory_.MakeReadOnly(); }
  InputView input() const { return {first_, stride_}; }
  OutputView output() { return {first_, stride_}; }

 private:
  int64_t images_, image_bytes_, stride_, bytes_;
  GuardedTensor memory_;
  std::byte* first_;
};

}  // namespace tilesmith
