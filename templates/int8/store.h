// How kernels of quantised convolutions store what they summed: bytes or reals, in any layout.
#pragma once

#include "ops/quantize/quantized_conv.h"
#include "templates/int8/byte_image.h"
#include "templates/int8/pixels.h"

namespace tilesmith {

class QuantizedStore {
 public:
  // `layout` is the output's and the residual's. `op` need not outlive it.
  QuantizedStore(const QuantizedConvOp& op, const Layout& layout, const Target& cpu);

  // What all pixels have in common.
  const QuantizedPixels& common() const { return common_; }

  // Stores pixels that are adjacent in the output: compute(pixels, first) is called for pieces of them, with
  // where and how their results are to be stored, and is to compute pixels.count ones from number `first` on.
  // Preconditions: `pixels` is common() with parameters of the block of channels; channels.count is at most
  // its lanes.
  template <typename Compute>
  void Store(QuantizedPixels pixels, const ElementRange& channels, const ElementRange& places,
             const KernelArgs& args, int64_t image, const Compute& compute) const {
    pixels.channels = channels.count;
    if (reals_) return StoreReals(pixels, channels, places, args.output.image<float>(image), compute);
    const uint8_t* const residual = sum_ ? args.inputs[1].image<uint8_t>(image) : nullptr;
    StoreBytes(pixels, channels, places, residual, args.output.image<uint8_t>(image), compute);
  }

 private:
  template <typename Compute>
  void StoreBytes(QuantizedPixels pixels, const ElementRange& channels, const ElementRange& places,
                  const uint8_t* residual, uint8_t* image, const Compute& compute) const {
    const bool whole = channels.count == lanes_;
    if (out_.AreAdjacent(channels) && (whole || masks_)) {
      const int64_t at = out_.Offset(channels.first, places.first);
      pixels.count = places.count;
      pixels.out = image + at;
      pixels.out_step = pixels.sum.step = out_.dims.lanes;
      if (sum_) pixels.sum.residual = residual + at;
      compute(pixels, int64_t{0});
      return ZeroLanesAfter(out_, channels, places, 1, reinterpret_cast<std::byte*>(image));
    }
    alignas(64) uint8_t buffer[kPiecePixels * kMaxLanes];
    alignas(64) uint8_t addends[kPiecePixels * kMaxLanes];
    pixels.out = buffer;
    pixels.out_step = pixels.sum.step = lanes_;
    if (sum_) {
      std::ranges::fill(addends, uint8_t{0});
      pixels.sum.residual = addends;
    }
    ForEachPiece(pixels, places, [&](const ElementRange& piece) {
      if (sum_) BufferedPixels<uint8_t>{addends, lanes_, channels, piece}.CopyFrom(out_, residual);
      compute(pixels, piece.first - places.first);
      StorePixels({buffer, lanes_, channels, piece}, out_, store_channel_rows_, image);
    });
  }

  template <typename Compute>
  void StoreReals(QuantizedPixels pixels, const ElementRange& channels, const ElementRange& places,
                  float* image, const Compute& compute) const {
    alignas(64) float buffer[kPiecePixels * kMaxLanes];
    pixels.reals = buffer;
    ForEachPiece(pixels, places, [&](const ElementRange& piece) {
      compute(pixels, piece.first - places.first);
      BufferedPixels<float>{buffer, lanes_, channels, piece}.CopyTo(out_, image);
      ZeroLanesAfter(out_, channels, piece, sizeof(float), reinterpret_cast<std::byte*>(image));
    });
  }

  // Calls visit(piece) for each piece of the places, with pixels.count set to its size.
  template <typename Visit>
  static void ForEachPiece(QuantizedPixels& pixels, const ElementRange& places, const Visit& visit) {
    for (int64_t done = 0; done < places.count; done += kPiecePixels) {
      pixels.count = std::min(kPiecePixels, places.count - done);
      visit({places.first + done, pixels.count});
    }
  }

  void SetRange(const QuantizedConvParams& params);

  static constexpr int64_t kPiecePixels = 96;
  static constexpr int64_t kMaxLanes = QuantizedConvLanes(Isa::kAvx512);

  const ByteImage out_;
  const int64_t lanes_;
  const bool reals_, sum_;  // what is stored, and whether a residual is added before
  const bool masks_;        // fewer channels than lanes are stored, and residuals of them read, as such
  void (*const store_channel_rows_)(const ChannelRows&);
  QuantizedPixels common_;
};

}  // namespace tilesmith
