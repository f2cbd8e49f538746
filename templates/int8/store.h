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
    if (reals_) return StoreReals(pixels, channels, places, args.output, image, compute);
    StoreBytes(pixels, channels, places, args, image, compute);
  }

 private:
  template <typename Compute>
  void StoreBytes(QuantizedPixels pixels, const ElementRange& channels, const ElementRange& places,
                  const KernelArgs& args, int64_t image, const Compute& compute) const {
    const bool whole = channels.count == lanes_;
    const ByteImage out = out_.Shifted(args.output.block_shift);
    const ByteImage added = out_.Shifted(sum_ ? args.inputs[1].block_shift : 0);
    const uint8_t* const residual = sum_ ? args.inputs[1].image<uint8_t>(image) : nullptr;
    auto* const to = args.output.image<uint8_t>(image);
    if (out.AreAdjacent(channels) && (whole || masks_)) {
      pixels.count = places.count;
      pixels.out = to + out.Offset(channels.first, places.first);
      pixels.out_step = pixels.sum.step = out.dims.lanes;
      if (sum_) pixels.sum.residual = residual + added.Offset(channels.first, places.first);
      compute(pixels, int64_t{0});
      return ZeroLanesAfter(out, channels, places, 1, reinterpret_cast<std::byte*>(to));
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
      if (sum_) BufferedPixels<uint8_t>{addends, lanes_, channels, piece}.CopyFrom(added, residual);
      compute(pixels, piece.first - places.first);
      StorePixels({buffer, lanes_, channels, piece}, out, store_channel_rows_, to);
    });
  }

  template <typename Compute>
  void StoreReals(QuantizedPixels pixels, const ElementRange& channels, const ElementRange& places,
                  const OutputView& view, int64_t image, const Compute& compute) const {
    const ByteImage out = out_.Shifted(view.block_shift / int64_t{sizeof(float)});
    auto* const to = view.image<float>(image);
    alignas(64) float buffer[kPiecePixels * kMaxLanes];
    pixels.reals = buffer;
    ForEachPiece(pixels, places, [&](const ElementRange& piece) {
      compute(pixels, piece.first - places.first);
      BufferedPixels<float>{buffer, lanes_, channels, piece}.CopyTo(out, to);
      ZeroLanesAfter(out, channels, piece, sizeof(float), reinterpret_cast<std::byte*>(to));
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
