// Bytes of an image in any layout, and how kernels of convolutions take and give them: pixels one after the
// other, channels adjacent.
#pragma once

#include <algorithm>
#include <span>
#include <type_traits>

#include "ops/kernels/block_kernel.h"
#include "ops/quantize/quantized_conv.h"
#include "templates/int8/pixels.h"

namespace tilesmith {

struct ElementRange {
  int64_t first = 0, count = 0;
};

// Where channels and pixels of an image lie, in elements.
struct ByteImage {
  ByteImage(const Shape& shape, const Layout& layout)
      : dims(BlockDimsOf(shape, layout)), plain(layout.is_nchw()), block_step(dims.block_floats()) {}
  // The same in a view, whose blocks are shifted by so many elements (InputView::block_shift).
  ByteImage Shifted(int64_t block_shift) const {
    ByteImage image = *this;
    image.block_step += block_shift;
    return image;
  }
  int64_t Offset(int64_t channel, int64_t pixel) const {
    return channel / dims.lanes * block_step + pixel * dims.lanes + channel % dims.lanes;
  }
  // Adjacent channels from this one on, at most `count`.
  int64_t Adjacent(int64_t channel, int64_t count) const {
    return std::min(count, dims.lanes - channel % dims.lanes);
  }
  bool AreAdjacent(const ElementRange& channels) const {
    return !plain && Adjacent(channels.first, channels.count) == channels.count;
  }
  const BlockDims dims;
  const bool plain;
  int64_t block_step;  // from one block of channels to the next
};

// Rows of a convolution's input with their padding, as the numbers of pixels.h.
class RowWidener {
 public:
  RowWidener(const ConvWorkload& conv, const ByteImage& in, const Quantization& input, bool bytes,
             void (*widen)(const WidenedRow&))
      : height_(conv.ih),
        width_(conv.iw),
        in_(in),
        flip_(FlipOf(input.type)),
        zero_(static_cast<uint8_t>(input.zero_points[0] + flip_)),
        number_bytes_(bytes ? 1 : 2),
        widen_(widen) {}

  uint8_t flip() const { return flip_; }
  // What stands for zero among bytes without a sign.
  uint8_t zero() const { return zero_; }

  // Every `step`-th column from `left` on, `columns` of them, of row y of these channels of an image. Columns
  // are `width` numbers apart in `to`.
  void Widen(const InputView& view, int64_t image, const ElementRange& channels, int64_t y, int64_t left,
             int64_t step, int64_t columns, int64_t width, std::byte* to) const;

 private:
  const int64_t height_, width_;
  const ByteImage in_;
  const uint8_t flip_, zero_;
  const int64_t number_bytes_;
  void (*const widen_)(const WidenedRow&);
};

// Pixels in a buffer, `lanes` elements from one to the next, and in an image.
template <typename T>
struct BufferedPixels {
  T* buffer;
  int64_t lanes;
  ElementRange channels, pixels;  // where in the image

  // The image's into the buffer, and the buffer's into the image, one by one.
  void CopyFrom(const ByteImage& image, const T* from) const;
  void CopyTo(const ByteImage& image, T* to) const;
};

// Buffered bytes into an image, zeros in the lanes behind its last channel; `transposed` is StoreChannelRows.
void StorePixels(const BufferedPixels<uint8_t>& from, const ByteImage& image,
                 void (*transposed)(const ChannelRows&), uint8_t* to);

// Sums weights from which their zero point was subtracted.
int64_t SumOfWeights(std::span<const int16_t> weights);
// The bias of sums of bytes from which their zero point was not subtracted, modulo 2^32. `weights`: the sum
// of those that they are multiplied by.
int32_t BiasWithoutZero(int32_t bias, int64_t weights, int32_t zero);

// Zeros in the lanes after the last channel, where `channels` are the last ones.
void ZeroLanesAfter(const ByteImage& image, const ElementRange& channels, const ElementRange& pixels,
                    int64_t element_bytes, std::byte* out);

template <typename T>
void BufferedPixels<T>::CopyFrom(const ByteImage& image, const T* from) const {
  for (int64_t c = 0; c < channels.count; ++c) {
    const T* in = from + image.Offset(channels.first + c, pixels.first);
    for (int64_t p = 0; p < pixels.count; ++p) buffer[p * lanes + c] = in[p * image.dims.lanes];
  }
}

template <typename T>
void BufferedPixels<T>::CopyTo(const ByteImage& image, T* to) const {
  for (int64_t c = 0, adjacent = 0; c < channels.count; c += adjacent) {
    adjacent = image.Adjacent(channels.first + c, channels.count - c);
    T* const out = to + image.Offset(channels.first + c, pixels.first);
    const auto copy = [&](auto count) {
      for (int64_t p = 0; p < pixels.count; ++p)
        std::copy_n(buffer + p * lanes + c, int64_t{count}, out + p * image.dims.lanes);
    };
    if (adjacent == 8) {
      copy(std::integral_constant<int64_t, 8>());  // an instruction instead of a call
    } else {
      copy(adjacent);
    }
  }
}

}  // namespace tilesmith
