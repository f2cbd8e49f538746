#include "ops/quantize/quantized_conv_kernel.h"

#include <algorithm>
#include <type_traits>

#include "ops/kernels/block_kernel.h"
#include "ops/quantize/quantized_conv_loops.h"
#include "ops/quantize/quantized_conv_plan.h"

namespace tilesmith {
namespace {

constexpr double kMaxWindowBytes = 64 << 20;

// Where channels and pixels of an image lie, in bytes.
struct BytePlacement {
  BytePlacement(const Shape& shape, const Layout& layout)
      : dims(BlockDimsOf(shape, layout)), plain(layout.is_nchw()) {}
  int64_t Offset(int64_t channel, int64_t pixel) const {
    return (channel / dims.lanes * dims.pixels() + pixel) * dims.lanes + channel % dims.lanes;
  }
  // Adjacent channels from this one on, at most `count`.
  int64_t Adjacent(int64_t channel, int64_t count) const {
    return std::min(count, dims.lanes - channel % dims.lanes);
  }
  const BlockDims dims;
  const bool plain;
};

// What turns a type's bytes into those without a sign.
uint8_t FlipOf(DataType type) { return type == DataType::kI8 ? 0x80 : 0; }

class QuantizedConvKernel : public Kernel {
 public:
  QuantizedConvKernel(const KernelRequest& request, const QuantizedConvOp& op)
      : plan_(op.workload(), QuantizedConvLanes(request.cpu.isa)),
        in_(request.inputs[0], request.layout),
        out_(request.output, request.layout),
        input_(op.params().input),
        pixel_offsets_(plan_.PixelOffsets()),
        thread_bytes_(
            RoundUp((plan_.TileElements() + plan_.PairedRowElements()) * int64_t{sizeof(int16_t)}, 64)),
        widen_(TILESMITH_DISPATCH(request.cpu.isa, WidenRow)),
        pair_up_(TILESMITH_DISPATCH(request.cpu.isa, PairUp)),
        convolve_(plan_.depthwise ? TILESMITH_DISPATCH(request.cpu.isa, ConvolveDepthwise)
                                  : TILESMITH_DISPATCH(request.cpu.isa, ConvolveDense)),
        store_channel_rows_(TILESMITH_DISPATCH(request.cpu.isa, StoreChannelRows)) {
    PackParameters(op);
    const Quantization& output = op.params().output;
    const int32_t zero = output.zero_points[0];
    pixels_.runs = plan_.runs.data();
    pixels_.run_count = std::ssize(plan_.runs);
    pixels_.pairs = plan_.run_length / 2;
    pixels_.low = static_cast<float>(op.params().limits.low - zero);
    pixels_.high = static_cast<float>(op.params().limits.high - zero);
    pixels_.flip = FlipOf(output.type);
    pixels_.zero = zero + pixels_.flip;
  }

  TaskGrid Grid(int) const override { return plan_.Grid(); }
  int64_t Tasks(int stage) const override { return Grid(stage).tasks(); }
  int64_t ScratchBytes(int threads) const override { return threads * thread_bytes_; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    int16_t* const widened = args.scratch_at<int16_t>(range.thread * thread_bytes_);
    int64_t held = -1;  // the group of a tile of an image that is in the scratch
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t part = task / plan_.blocks;
      const Tile tile = TileOf(part);
      if (part != held) Widen(args.inputs[0].image<uint8_t>(tile.image), tile, widened);
      held = part;
      Convolve(widened, tile, task % plan_.blocks, args.output.image<uint8_t>(tile.image));
    }
  }

 private:
  struct Tile {
    int64_t image = 0, group = 0;
    int64_t y = 0, x = 0, rows = 0, columns = 0;  // output pixels
  };

  Tile TileOf(int64_t part) const {
    const int64_t place = part / plan_.groups % plan_.tiles();
    Tile tile{.image = part / plan_.groups / plan_.tiles(),
              .group = part % plan_.groups,
              .y = place / plan_.column_tiles * plan_.tile_rows,
              .x = place % plan_.column_tiles * plan_.tile_columns};
    tile.rows = std::min(plan_.tile_rows, plan_.conv.oh - tile.y);
    tile.columns = std::min(plan_.tile_columns, plan_.conv.ow - tile.x);
    return tile;
  }

  void Widen(const uint8_t* image, const Tile& tile, int16_t* widened) const {
    const ConvWorkload& conv = plan_.conv;
    const int64_t columns = plan_.ColumnsSeenBy(tile.columns);
    int16_t* const paired_row = widened + plan_.TileElements();
    for (int64_t row = 0; row < plan_.RowsSeenBy(tile.rows); ++row) {
      const int64_t y = tile.y * conv.sh - conv.ph + row * plan_.row_step;
      int16_t* const to = widened + row * plan_.row_pitch;
      if (y < 0 || y >= conv.ih) {
        std::fill_n(to, columns * plan_.pitch, int16_t{0});
      } else if (plan_.depthwise) {
        WidenRow(image, tile, y, paired_row);
        pair_up_(paired_row, plan_.pair_distance(), columns * plan_.lanes, to);
      } else {
        WidenRow(image, tile, y, to);
      }
    }
  }

  // Row `y` of the input, as far as the tile sees it.
  void WidenRow(const uint8_t* image, const Tile& tile, int64_t y, int16_t* to) const {
    const ConvWorkload& conv = plan_.conv;
    const int64_t left = tile.x * conv.sw - conv.pw, step = plan_.column_step, width = plan_.group_in;
    const int64_t columns = plan_.ColumnsSeenBy(tile.columns);
    const int64_t first = left < 0 ? std::min(CeilDiv(-left, step), columns) : 0;
    const int64_t last =
        std::max(first, left >= conv.iw ? 0 : std::min((conv.iw - 1 - left) / step + 1, columns));
    std::fill_n(to, first * width, int16_t{0});
    std::fill_n(to + last * width, (columns - last) * width, int16_t{0});
    if (first == last) return;

    const uint8_t flip = FlipOf(input_.type);
    WidenedRow row{.in_step = step * in_.dims.lanes,
                   .channel_step = in_.plain ? in_.dims.pixels() : 1,
                   .out_step = width,
                   .columns = last - first,
                   .flip = flip,
                   .zero = static_cast<int16_t>(input_.zero_points[0] + flip)};
    const int64_t channels = std::min(width, conv.ic - tile.group * plan_.group_in);
    for (int64_t c = 0; c < channels; c += row.channels) {
      const int64_t channel = tile.group * plan_.group_in + c;
      row.channels = in_.plain ? channels : in_.Adjacent(channel, channels - c);
      row.in = image + in_.Offset(channel, y * conv.iw + left + first * step);
      row.out = to + first * width + c;
      widen_(row);
    }
  }

  void Convolve(const int16_t* widened, const Tile& tile, int64_t block, uint8_t* image) const {
    const int64_t index = tile.group * plan_.blocks + block, channel = block * plan_.lanes;
    const Channels channels{.first = tile.group * plan_.group_out + channel,
                            .count = std::min({plan_.lanes, plan_.group_out - channel,
                                               plan_.conv.oc - (tile.group * plan_.group_out + channel)})};
    QuantizedPixels pixels = pixels_;
    pixels.offsets = pixel_offsets_.data();
    pixels.weights = weights_.data() + index * block_weights();
    pixels.bias = bias_.data() + index * plan_.lanes;
    pixels.multipliers = multipliers_.data() + index * plan_.lanes;
    // Pixels that are adjacent in the output, too.
    const bool whole_rows = tile.columns == plan_.conv.ow;
    pixels.count = whole_rows ? tile.rows * tile.columns : tile.columns;
    for (int64_t row = 0; row < (whole_rows ? 1 : tile.rows); ++row) {
      pixels.input = widened + row * plan_.row_stride * plan_.row_pitch;
      Store(pixels, channels, (tile.y + row) * plan_.conv.ow + tile.x, image);
    }
  }

  struct Channels {
    int64_t first, count;
  };

  // Computes pixels whose first is number `pixel` of the image.
  void Store(QuantizedPixels pixels, const Channels& channels, int64_t pixel, uint8_t* image) const {
    if (!out_.plain && out_.Adjacent(channels.first, plan_.lanes) == plan_.lanes &&
        channels.count == plan_.lanes) {
      pixels.out = image + out_.Offset(channels.first, pixel);
      pixels.out_step = out_.dims.lanes;
      convolve_(pixels);
      return ZeroPadding(channels, pixel, pixels.count, image);
    }
    alignas(64) uint8_t buffer[kPiecePixels * kMaxLanes];
    const int64_t count = pixels.count;
    pixels.out = buffer;
    pixels.out_step = plan_.lanes;
    for (int64_t done = 0; done < count; done += kPiecePixels) {
      pixels.count = std::min(kPiecePixels, count - done);
      convolve_(pixels);
      CopyOut(buffer, channels, {pixel + done, pixels.count}, image);
      pixels.offsets += pixels.count;
    }
    ZeroPadding(channels, pixel, count, image);
  }

  struct PixelRange {
    int64_t first, count;
  };

  void CopyOut(const uint8_t* buffer, const Channels& channels, const PixelRange& pixels,
               uint8_t* image) const {
    if (out_.plain) {
      return store_channel_rows_({.in = buffer,
                                  .in_step = plan_.lanes,
                                  .out = image + out_.Offset(channels.first, pixels.first),
                                  .out_step = out_.dims.pixels(),
                                  .pixels = pixels.count,
                                  .channels = channels.count});
    }
    for (int64_t c = 0, adjacent = 0; c < channels.count; c += adjacent) {
      adjacent = out_.Adjacent(channels.first + c, channels.count - c);
      uint8_t* const to = image + out_.Offset(channels.first + c, pixels.first);
      const auto copy = [&](auto bytes) {
        for (int64_t p = 0; p < pixels.count; ++p)
          std::copy_n(buffer + p * plan_.lanes + c, int64_t{bytes}, to + p * out_.dims.lanes);
      };
      if (adjacent == 8) {
        copy(std::integral_constant<int64_t, 8>());  // an instruction instead of a call
      } else {
        copy(adjacent);
      }
    }
  }

  // The lanes after the last channel, where these are the last channels.
  void ZeroPadding(const Channels& channels, int64_t pixel, int64_t count, uint8_t* image) const {
    const int64_t end = channels.first + channels.count;
    const int64_t padding = out_.dims.blocks * out_.dims.lanes - end;
    if (end != plan_.conv.oc || padding == 0) return;
    uint8_t* const to = image + out_.Offset(end, pixel);
    for (int64_t p = 0; p < count; ++p) std::fill_n(to + p * out_.dims.lanes, padding, uint8_t{0});
  }

  int64_t block_weights() const { return std::ssize(plan_.runs) * plan_.run_length * plan_.lanes; }

  void PackParameters(const QuantizedConvOp& op) {
    const int64_t blocks = plan_.groups * plan_.blocks, lanes = plan_.lanes;
    weights_.resize(static_cast<size_t>(blocks * block_weights()));
    bias_.resize(static_cast<size_t>(blocks * lanes));
    multipliers_.resize(bias_.size());
    const std::vector<int16_t> weights = op.CenteredWeights();
    const int64_t terms = std::ssize(weights) / plan_.conv.oc;
    for (int64_t o = 0; o < plan_.conv.oc; ++o) {
      const int64_t in_group = o % plan_.group_out;
      const int64_t block = o / plan_.group_out * plan_.blocks + in_group / lanes, lane = in_group % lanes;
      bias_[block * lanes + lane] = op.params().bias ? op.params().bias->data<int32_t>()[o] : 0;
      multipliers_[block * lanes + lane] = op.multipliers()[o];
      PackChannel(&weights[o * terms], &weights_[block * block_weights() + 2 * lane]);
    }
  }

  // The weights of one output channel, whose pairs come to lie `lanes` pairs apart.
  void PackChannel(const int16_t* weights, int16_t* packed) const {
    const ConvWorkload& conv = plan_.conv;
    const int64_t channels = plan_.depthwise ? 1 : plan_.group_in;
    const int64_t columns = plan_.depthwise ? 2 : conv.dw == 0 ? conv.kw : 1;  // of a run
    for (int64_t i = 0; i < conv.kh; ++i) {
      for (int64_t j = 0; j < conv.kw; j += columns) {
        for (int64_t k = 0; k < plan_.run_length; ++k) {
          const int64_t c = k % channels, column = j + k / channels;
          const bool inside = k / channels < columns && column < conv.kw;
          const int64_t at = k / 2 * 2 * plan_.lanes + k % 2;
          packed[at] = inside ? weights[(c * conv.kh + i) * conv.kw + column] : int16_t{0};
        }
        packed += plan_.run_length * plan_.lanes;
      }
    }
  }

  static constexpr int64_t kPiecePixels = 96;
  static constexpr int64_t kMaxLanes = QuantizedConvLanes(Isa::kAvx512);

  const QuantizedConvPlan plan_;
  const BytePlacement in_, out_;
  const Quantization input_;
  const std::vector<int32_t> pixel_offsets_;
  const int64_t thread_bytes_;
  void (*const widen_)(const WidenedRow&);
  void (*const pair_up_)(const int16_t*, int64_t, int64_t, int16_t*);
  void (*const convolve_)(const QuantizedPixels&);
  void (*const store_channel_rows_)(const ChannelRows&);
  QuantizedPixels pixels_;  // what all have in common
  std::vector<int16_t> weights_;
  std::vector<int32_t> bias_;
  std::vector<float> multipliers_;
};

}  // namespace

bool QuantizedConvKernelFits(const ConvWorkload& workload) {
  return WidenedWindowBytes(workload) <= kMaxWindowBytes;
}

std::unique_ptr<Kernel> MakeQuantizedConvKernel(const KernelRequest& request, const QuantizedConvOp& op) {
  return std::make_unique<QuantizedConvKernel>(request, op);
}

}  // namespace tilesmith
