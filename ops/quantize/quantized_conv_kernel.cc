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
      : QuantizedConvKernel(request, op, op.CenteredWeights()) {}
  TaskGrid Grid(int) const override { return plan_.Grid(); }
  int64_t Tasks(int stage) const override { return Grid(stage).tasks(); }
  int64_t ScratchBytes(int threads) const override { return threads * thread_bytes_; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    std::byte* const widened = args.scratch_at<std::byte>(range.thread * thread_bytes_);
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
  // `weights` are centered.
  QuantizedConvKernel(const KernelRequest& request, const QuantizedConvOp& op,
                      const std::vector<int16_t>& weights)
      : cpu_(CpuFor(request.cpu, weights)),
        plan_(op.workload(), QuantizedConvLanes(cpu_.isa), cpu_.vnni ? 1 : 2, cpu_.cores),
        in_(request.inputs[0], request.layout),
        out_(request.output, request.layout),
        input_(op.params().input),
        flip_(FlipOf(input_.type)),
        zero_(static_cast<uint8_t>(input_.zero_points[0] + flip_)),
        pixel_offsets_(plan_.PixelOffsets()),
        thread_bytes_(RoundUp(plan_.TileBytes() + plan_.GatheredRowBytes(), 64)),
        widen_(TILESMITH_DISPATCH_VNNI(cpu_, WidenRow)),
        gather_words_(TILESMITH_DISPATCH_VNNI(cpu_, GatherWords)),
        convolve_(plan_.depthwise ? TILESMITH_DISPATCH_VNNI(cpu_, ConvolveDepthwise)
                                  : TILESMITH_DISPATCH_VNNI(cpu_, ConvolveDense)),
        store_channel_rows_(TILESMITH_DISPATCH_VNNI(cpu_, StoreChannelRows)) {
    PackParameters(op, weights);
    const Quantization& output = op.params().output;
    const int32_t zero = output.zero_points[0];
    pixels_.runs = plan_.runs.data();
    pixels_.run_count = std::ssize(plan_.runs);
    pixels_.words = plan_.run_length / plan_.word;
    pixels_.low = static_cast<float>(op.params().limits.low - zero);
    pixels_.high = static_cast<float>(op.params().limits.high - zero);
    pixels_.flip = FlipOf(output.type);
    pixels_.zero = zero + pixels_.flip;
  }

  // Without products of bytes where weights are no bytes with a sign.
  static Target CpuFor(Target cpu, const std::vector<int16_t>& weights) {
    cpu.vnni &= std::ranges::all_of(weights, [](int16_t weight) { return weight >= -128 && weight <= 127; });
    return cpu;
  }

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

  void Widen(const uint8_t* image, const Tile& tile, std::byte* widened) const {
    const ConvWorkload& conv = plan_.conv;
    const int64_t columns = plan_.ColumnsSeenBy(tile.columns);
    std::byte* const row_to_gather = widened + plan_.TileBytes();
    for (int64_t row = 0; row < plan_.RowsSeenBy(tile.rows); ++row) {
      const int64_t y = tile.y * conv.sh - conv.ph + row * plan_.row_step;
      std::byte* const to = widened + row * plan_.row_pitch;
      if (y < 0 || y >= conv.ih) {
        FillZero(to, columns * plan_.pitch);
      } else if (plan_.depthwise) {
        WidenRow(image, tile, y, row_to_gather);
        gather_words_(row_to_gather, plan_.word_distance(), columns * plan_.lanes, to);
      } else {
        WidenRow(image, tile, y, to);
      }
    }
  }

  // What stands for zero, in numbers: padding.
  void FillZero(std::byte* to, int64_t bytes) const {
    std::fill_n(to, bytes, std::byte{plan_.number_bytes == 1 ? zero_ : uint8_t{0}});
  }

  // Row `y` of the input, as far as the tile sees it.
  void WidenRow(const uint8_t* image, const Tile& tile, int64_t y, std::byte* to) const {
    const ConvWorkload& conv = plan_.conv;
    const int64_t left = tile.x * conv.sw - conv.pw, step = plan_.column_step, width = plan_.group_in;
    const int64_t columns = plan_.ColumnsSeenBy(tile.columns), column_bytes = width * plan_.number_bytes;
    const int64_t first = left < 0 ? std::min(CeilDiv(-left, step), columns) : 0;
    const int64_t last =
        std::max(first, left >= conv.iw ? 0 : std::min((conv.iw - 1 - left) / step + 1, columns));
    FillZero(to, first * column_bytes);
    FillZero(to + last * column_bytes, (columns - last) * column_bytes);
    if (first == last) return;

    WidenedRow row{.in_step = step * in_.dims.lanes,
                   .channel_step = in_.plain ? in_.dims.pixels() : 1,
                   .out_step = width,
                   .columns = last - first,
                   .flip = flip_,
                   .zero = plan_.number_bytes == 1 ? int16_t{0} : int16_t{zero_}};
    const int64_t channels = std::min(width, conv.ic - tile.group * plan_.group_in);
    for (int64_t c = 0; c < channels; c += row.channels) {
      const int64_t channel = tile.group * plan_.group_in + c;
      row.channels = in_.plain ? channels : in_.Adjacent(channel, channels - c);
      row.in = image + in_.Offset(channel, y * conv.iw + left + first * step);
      row.out = to + first * column_bytes + c * plan_.number_bytes;
      widen_(row);
    }
  }

  void Convolve(const std::byte* widened, const Tile& tile, int64_t block, uint8_t* image) const {
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

  // Bytes.
  int64_t block_weights() const {
    return std::ssize(plan_.runs) * plan_.run_length * plan_.lanes * plan_.number_bytes;
  }

  void PackParameters(const QuantizedConvOp& op, const std::vector<int16_t>& weights) {
    const int64_t blocks = plan_.groups * plan_.blocks, lanes = plan_.lanes;
    weights_.resize(static_cast<size_t>(blocks * block_weights()));
    bias_.resize(static_cast<size_t>(blocks * lanes));
    multipliers_.resize(bias_.size());
    const int64_t terms = std::ssize(weights) / plan_.conv.oc;
    for (int64_t o = 0; o < plan_.conv.oc; ++o) {
      const int64_t in_group = o % plan_.group_out;
      const int64_t block = o / plan_.group_out * plan_.blocks + in_group / lanes, lane = in_group % lanes;
      const std::span<const int16_t> channel = std::span(weights).subspan(o * terms, terms);
      const int32_t bias = op.params().bias ? op.params().bias->data<int32_t>()[o] : 0;
      bias_[block * lanes + lane] = plan_.number_bytes == 1 ? WithoutZero(bias, channel) : bias;
      multipliers_[block * lanes + lane] = op.multipliers()[o];
      std::byte* const packed = &weights_[block * block_weights() + 4 * lane];
      if (plan_.number_bytes == 1) {
        PackChannel(channel, reinterpret_cast<int8_t*>(packed));
      } else {
        PackChannel(channel, reinterpret_cast<int16_t*>(packed));
      }
    }
  }

  // The bias of sums of bytes from which their zero point was not subtracted, modulo 2^32.
  int32_t WithoutZero(int32_t bias, std::span<const int16_t> weights) const {
    auto sum = static_cast<uint32_t>(bias);
    for (const int16_t weight : weights) sum -= static_cast<uint32_t>(weight * zero_);
    return static_cast<int32_t>(sum);
  }

  // The weights of one output channel, whose words come to lie `lanes` words apart.
  template <typename Number>
  void PackChannel(std::span<const int16_t> weights, Number* packed) const {
    const ConvWorkload& conv = plan_.conv;
    const int64_t channels = plan_.depthwise ? 1 : plan_.group_in;
    const int64_t columns = plan_.run_columns();
    for (int64_t i = 0; i < conv.kh; ++i) {
      for (int64_t j = 0; j < conv.kw; j += columns) {
        for (int64_t k = 0; k < plan_.run_length; ++k) {
          const int64_t c = k % channels, column = j + k / channels;
          const bool inside = k / channels < columns && column < conv.kw;
          const int64_t at = k / plan_.word * plan_.word * plan_.lanes + k % plan_.word;
          packed[at] = static_cast<Number>(inside ? weights[(c * conv.kh + i) * conv.kw + column] : 0);
        }
        packed += plan_.run_length * plan_.lanes;
      }
    }
  }

  static constexpr int64_t kPiecePixels = 96;
  static constexpr int64_t kMaxLanes = QuantizedConvLanes(Isa::kAvx512);

  const Target cpu_;
  const QuantizedConvPlan plan_;
  const BytePlacement in_, out_;
  const Quantization input_;
  const uint8_t flip_, zero_;  // of the input's bytes, and what is zero among them
  const std::vector<int32_t> pixel_offsets_;
  const int64_t thread_bytes_;
  void (*const widen_)(const WidenedRow&);
  void (*const gather_words_)(const void*, int64_t, int64_t, void*);
  void (*const convolve_)(const QuantizedPixels&);
  void (*const store_channel_rows_)(const ChannelRows&);
  QuantizedPixels pixels_;  // what all have in common
  std::vector<std::byte> weights_;
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
