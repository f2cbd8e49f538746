#include "templates/int8/byte_image.h"

#include <algorithm>
#include <numeric>

#include "layouts/base/sizes.h"

namespace tilesmith {

void RowWidener::Widen(const InputView& view, int64_t image, const ElementRange& channels, int64_t y,
                       int64_t left, int64_t step, int64_t columns, int64_t width, std::byte* to) const {
  const int64_t column_bytes = width * number_bytes_;
  const auto fill_zero = [&](int64_t begin, int64_t end) {
    std::fill_n(to + begin * column_bytes, (end - begin) * column_bytes,
                std::byte{number_bytes_ == 1 ? zero_ : uint8_t{0}});
  };
  if (y < 0 || y >= height_) return fill_zero(0, columns);
  const int64_t first = left < 0 ? std::min(CeilDiv(-left, step), columns) : 0;
  const int64_t last =
      std::max(first, left >= width_ ? 0 : std::min((width_ - 1 - left) / step + 1, columns));
  fill_zero(0, first);
  fill_zero(last, columns);
  if (first == last) return;

  const ByteImage in = in_.Shifted(view.block_shift);
  WidenedRow row{.in_step = step * in_.dims.lanes,
                 .channel_step = in_.plain ? in.block_step : 1,
                 .out_step = width,
                 .columns = last - first,
                 .flip = flip_,
                 .zero = number_bytes_ == 1 ? int16_t{0} : int16_t{zero_}};
  for (int64_t c = 0; c < channels.count; c += row.channels) {
    const int64_t channel = channels.first + c;
    row.channels = in_.plain ? channels.count : in_.Adjacent(channel, channels.count - c);
    row.in = view.image<uint8_t>(image) + in.Offset(channel, y * width_ + left + first * step);
    row.out = to + first * column_bytes + c * number_bytes_;
    widen_(row);
  }
}

void StorePixels(const BufferedPixels<uint8_t>& from, const ByteImage& image,
                 void (*transposed)(const ChannelRows&), uint8_t* to) {
  const auto& [buffer, lanes, channels, pixels] = from;
  if (image.plain) {
    return transposed({.in = buffer,
                       .in_step = lanes,
                       .out = to + image.Offset(channels.first, pixels.first),
                       .out_step = image.block_step,
                       .pixels = pixels.count,
                       .channels = channels.count});
  }
  from.CopyTo(image, to);
  ZeroLanesAfter(image, channels, pixels, 1, reinterpret_cast<std::byte*>(to));
}

int64_t SumOfWeights(std::span<const int16_t> weights) {
  return std::accumulate(weights.begin(), weights.end(), int64_t{0});
}

int32_t BiasWithoutZero(int32_t bias, int64_t weights, int32_t zero) {
  return static_cast<int32_t>(static_cast<uint32_t>(bias) - static_cast<uint32_t>(weights * zero));
}

void ZeroLanesAfter(const ByteImage& image, const ElementRange& channels, const ElementRange& pixels,
                    int64_t element_bytes, std::byte* out) {
  const int64_t end = channels.first + channels.count;
  const int64_t padding = image.dims.blocks * image.dims.lanes - end;
  if (end != image.dims.channels || padding == 0) return;
  std::byte* const to = out + image.Offset(end, pixels.first) * element_bytes;
  for (int64_t p = 0; p < pixels.count; ++p)
    std::fill_n(to + p * image.dims.lanes * element_bytes, padding * element_bytes, std::byte{0});
}

}  // namespace tilesmith
