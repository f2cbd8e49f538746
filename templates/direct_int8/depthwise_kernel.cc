#include "templates/direct_int8/depthwise_kernel.h"

#include <algorithm>

#include "layouts/base/sizes.h"
#include "templates/base/packed_parameters.h"
#include "templates/direct_int8/depthwise_loops.h"
#include "templates/int8/byte_conv.h"
#include "templates/int8/byte_image.h"

namespace tilesmith::direct_int8 {
namespace {

constexpr double kMaxSeenBytes = 1 << 20;  // by one output row
constexpr int64_t kTileRowsBytes = 128 << 10;
constexpr int64_t kTasksOfACore = 8;  // for each core

int64_t WindowRows(const ConvWorkload& w) { return (w.kh - 1) * (w.dh + 1) + 1; }

double BytesSeenByARow(const ConvWorkload& w) {
  const double rows = static_cast<double>(w.kh - 1) * static_cast<double>(w.dh + 1) + 1;
  const double columns = static_cast<double>(w.ow - 1) * static_cast<double>(w.sw) +
                         static_cast<double>(w.kw - 1) * static_cast<double>(w.dw + 1) + 1;
  return rows * columns * kDepthwiseLanes;
}

// Bytes from row to row of what output rows see, in the scratch. Precondition: it fits.
int64_t RowPitch(const ConvWorkload& w) {
  return ((w.ow - 1) * w.sw + (w.kw - 1) * (w.dw + 1) + 1) * kDepthwiseLanes;
}

}  // namespace

bool DepthwiseFits(const ConvWorkload& w, const Target& cpu) {
  return cpu.vnni && IsDepthwise(w) && !w.post.sum && IsByte(w.bytes->out) &&
         w.bytes->weights == DataType::kI8 && BytesSeenByARow(w) <= kMaxSeenBytes;
}

// The number is even, where it may be.
int64_t DepthwiseRows(const ConvWorkload& w, int64_t cores) {
  const int64_t fit = (kTileRowsBytes / RowPitch(w) - WindowRows(w)) / w.sh + 1;
  const int64_t shared = CeilDiv(w.mb * CeilDiv(w.oc, kDepthwiseLanes) * w.oh, kTasksOfACore * cores);
  const int64_t rows = std::clamp<int64_t>(std::min(fit, RoundUp(shared, 2)), 1, w.oh);
  return rows > 1 && rows < w.oh ? rows / 2 * 2 : rows;
}

TaskGrid DepthwiseGrid(const ConvWorkload& w, int64_t rows) {
  return {.images = w.mb,
          .channels = CeilDiv(w.oc, kDepthwiseLanes),
          .rows = CeilDiv(w.oh, rows),
          .channels_inner = true,
          .height = w.oh,
          .part_units = rows};
}

#ifdef TILESMITH_X86
namespace {

class DepthwiseKernel : public ConvKernel {
 public:
  DepthwiseKernel(const QuantizedConvOp& op, const Schedule& schedule, KernelParts* parts)
      : conv_(op.workload()),
        in_(conv_.input_shape(), schedule.in),
        out_(conv_.output_shape(), schedule.out),
        rows_(conv_, in_, op.params().input, true, &avx512_vnni::WidenRow),
        blocks_(CeilDiv(conv_.oc, kDepthwiseLanes)),
        row_pitch_(RowPitch(conv_)),
        columns_(row_pitch_ / kDepthwiseLanes),
        tile_rows_(schedule.plan.tile_rows),
        pairs_(conv_.kh == 3 && conv_.kw == 3 && conv_.sh == 1 && conv_.sw == 1 && conv_.dh == 0 &&
               conv_.dw == 0),
        words_(CeilDiv(conv_.kh * conv_.kw, 4)) {
    FindTaps();
    const int64_t words = blocks_ * kDepthwiseLanes * int64_t{sizeof(int32_t)};
    parameters_ = PackedParameters(parts, {(weight_words() + pair_words()) * kWordBytes, words, words},
                                   [&](const PackedParameters::Memory& to) { PackParameters(op, to); });
    const Quantization& output = op.params().output;
    common_.flip = FlipOf(output.type);
    common_.zero = output.zero_points[0] + common_.flip;
    common_.low = op.params().limits.low + common_.flip;
    common_.high = op.params().limits.high + common_.flip;
    common_.column_stride = conv_.sw * kDepthwiseLanes;
  }

  int64_t Tasks(int stage) const override { return Grid(stage).tasks(); }
  TaskGrid Grid(int) const override { return DepthwiseGrid(conv_, tile_rows_); }
  bool ShiftsBlocks() const override { return true; }
  // Most rows read these.
  std::span<const std::byte> PackedWeights() const override {
    const auto rows = static_cast<size_t>(weight_words() * kWordBytes);
    return pairs_ ? parameters_.weights().subspan(rows) : parameters_.weights();
  }
  int64_t ScratchBytes(int threads) const override { return threads * thread_bytes(); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    std::byte* const scratch = args.scratch_at<std::byte>(range.thread * thread_bytes());
    const int64_t tiles = CeilDiv(conv_.oh, tile_rows_);
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t block = task % blocks_, y = task / blocks_ % tiles * tile_rows_;
      const int64_t image = task / blocks_ / tiles, rows = std::min(tile_rows_, conv_.oh - y);
      const ElementRange channels{block * kDepthwiseLanes,
                                  std::min(kDepthwiseLanes, conv_.oc - block * kDepthwiseLanes)};
      for (int64_t row = 0; row < RowsSeenBy(rows); ++row) {
        rows_.Widen(args.inputs[0], image, channels, y * conv_.sh - conv_.ph + row, -conv_.pw, 1, columns_,
                    kDepthwiseLanes, scratch + row * row_pitch_);
      }
      const ByteImage placed = out_.Shifted(args.output.block_shift);
      uint8_t* const out = args.output.image<uint8_t>(image);
      for (int64_t row = 0, together = 1; row < rows; row += together) {
        together = pairs_ && row + 1 < rows ? 2 : 1;
        ComputeRows(scratch + row * conv_.sh * row_pitch_, channels, y + row, together, placed, out);
      }
    }
  }

 private:
  int64_t RowsSeenBy(int64_t rows) const { return (rows - 1) * conv_.sh + WindowRows(conv_); }
  int64_t thread_bytes() const { return RoundUp(RowsSeenBy(tile_rows_) * row_pitch_, 64); }

  // One output row, or two.
  void ComputeRows(const std::byte* input, const ElementRange& channels, int64_t y, int64_t rows,
                   const ByteImage& placed, uint8_t* image) const {
    const int64_t block = channels.first / kDepthwiseLanes;
    DepthwiseColumns columns = common_;
    columns.input = reinterpret_cast<const uint8_t*>(input);
    columns.words = words_;
    columns.taps = rows == 2 ? pair_taps_.data() : taps_.data();
    const int64_t word = rows == 2 ? weight_words() + block * kPairWords : block * words_;
    columns.weights = reinterpret_cast<const int8_t*>(parameters_.weights().data()) + word * kWordBytes;
    columns.bias = parameters_.bias_ints() + block * kDepthwiseLanes;
    columns.multipliers = parameters_.multipliers() + block * kDepthwiseLanes;
    columns.channels = channels.count;
    const auto compute =
        rows == 2 ? &avx512_vnni::ConvolveDepthwisePairs : &avx512_vnni::ConvolveDepthwiseColumns;
    const int64_t pixel = y * conv_.ow;
    if (placed.AreAdjacent(channels)) {
      columns.count = conv_.ow;
      columns.out = image + placed.Offset(channels.first, pixel);
      columns.out_step = placed.dims.lanes;
      columns.out_row_step = conv_.ow * placed.dims.lanes;
      compute(columns);
      ZeroLanesAfter(placed, channels, {pixel, rows * conv_.ow}, 1, reinterpret_cast<std::byte*>(image));
      return;
    }
    alignas(64) uint8_t buffer[2 * kPiecePixels * kDepthwiseLanes];
    columns.out = buffer;
    columns.out_step = kDepthwiseLanes;
    columns.out_row_step = kPiecePixels * kDepthwiseLanes;
    for (int64_t x = 0; x < conv_.ow; x += kPiecePixels) {
      columns.count = std::min(kPiecePixels, conv_.ow - x);
      compute(columns);
      columns.input += columns.count * columns.column_stride;
      for (int64_t row = 0; row < rows; ++row) {
        StorePixels({buffer + row * columns.out_row_step,
                     kDepthwiseLanes,
                     channels,
                     {pixel + row * conv_.ow + x, columns.count}},
                    placed, &avx512_vnni::StoreChannelRows, image);
      }
    }
  }

  int64_t weight_words() const { return blocks_ * words_; }
  int64_t pair_words() const { return pairs_ ? blocks_ * kPairWords : 0; }

  int32_t TapOffset(int64_t row, int64_t column) const {
    return static_cast<int32_t>(row * (conv_.dh + 1) * row_pitch_ +
                                column * (conv_.dw + 1) * kDepthwiseLanes);
  }

  void FindTaps() {
    const int64_t count = conv_.kh * conv_.kw;
    for (int64_t tap = 0; tap < 4 * words_; ++tap) {
      const int64_t real = std::min(tap, count - 1);  // the others have no weight
      taps_.push_back(TapOffset(real / conv_.kw, real % conv_.kw));
    }
    for (int64_t row = 0; pairs_ && row < 4; ++row) pair_taps_.push_back(TapOffset(row, 0));
  }

  void PackParameters(const QuantizedConvOp& op, const PackedParameters::Memory& to) const {
    const std::vector<int16_t> weights = op.CenteredWeights();
    const int64_t taps = conv_.kh * conv_.kw;
    auto* const all = reinterpret_cast<int8_t*>(to.weights);
    for (int64_t c = 0; c < conv_.oc; ++c) {
      const int64_t block = c / kDepthwiseLanes;
      const bool narrow = conv_.oc - block * kDepthwiseLanes <= kDepthwiseNarrow;
      const int64_t at = DepthwiseWord(c % kDepthwiseLanes, narrow);
      const std::span<const int16_t> channel = std::span(weights).subspan(c * taps, taps);
      const int32_t bias = op.params().bias ? op.params().bias->data<int32_t>()[c] : 0;
      to.bias_ints()[block * kDepthwiseLanes + at] =
          BiasWithoutZero(bias, SumOfWeights(channel), rows_.zero());
      to.multipliers[block * kDepthwiseLanes + at] = op.multipliers()[c];
      int8_t* const words = all + block * words_ * kWordBytes + 4 * at;
      for (int64_t tap = 0; tap < taps; ++tap)
        words[tap / 4 * kWordBytes + tap % 4] = static_cast<int8_t>(channel[tap]);
      if (!pairs_) continue;
      int8_t* const pairs = all + (weight_words() + block * kPairWords) * kWordBytes + 4 * at;
      for (int64_t tap = 0; tap < taps; ++tap) {
        for (int64_t row = 0; row < 2; ++row)
          pairs[(3 * row + tap % 3) * kWordBytes + tap / 3 + row] = static_cast<int8_t>(channel[tap]);
      }
    }
  }

  static constexpr int64_t kPiecePixels = 64;
  static constexpr int64_t kWordBytes = 4 * kDepthwiseLanes;
  static constexpr int64_t kPairWords = 6;

  const ConvWorkload conv_;
  const ByteImage in_, out_;
  const RowWidener rows_;
  const int64_t blocks_;
  const int64_t row_pitch_, columns_;  // what output rows see, in the scratch
  const int64_t tile_rows_;
  const bool pairs_;  // two rows together
  const int64_t words_;
  DepthwiseColumns common_;
  std::vector<int32_t> taps_, pair_taps_;
  PackedParameters parameters_;  // weights: those of single rows, then those of two together
};

}  // namespace

std::unique_ptr<ConvKernel> BuildDepthwiseKernel(const Schedule& schedule, const ConvWeights& weights) {
  return std::make_unique<DepthwiseKernel>(ByteConvOf(schedule.workload, weights), schedule, weights.parts);
}
#else
std::unique_ptr<ConvKernel> BuildDepthwiseKernel(const Schedule&, const ConvWeights&) {
  TILESMITH_CHECK(false, "there is no VNNI here");
}
#endif

}  // namespace tilesmith::direct_int8
