#include <algorithm>
#include <vector>

#include "layouts/convert_runs.h"
#include "ops/kernels/block_kernel.h"
#include "ops/pool/pool.h"
#include "ops/pool/pool_loops.h"

namespace tilesmith {
namespace {

// One axis of the window, resolved for every output position.
struct PoolAxis {
  std::vector<TapRange> taps;
  std::vector<float> divisors;  // taps that count for the mean; 1 where there are none
};

struct AxisWindow {
  int64_t kernel, stride, dilation, begin, end;
};

PoolAxis ResolveAxis(const AxisWindow& window, int64_t input, int64_t output, bool count_padding) {
  PoolAxis axis;
  for (int64_t at = 0; at < output; ++at) {
    const WindowTaps taps =
        TapsOf(at * window.stride - window.begin, window.kernel, window.dilation, input, window.end);
    const int64_t counted = count_padding ? taps.padded : taps.last - taps.first;
    axis.taps.push_back({taps.first, taps.last});
    axis.divisors.push_back(static_cast<float>(std::max<int64_t>(counted, 1)));
  }
  return axis;
}

int64_t LastTap(const PoolAxis& axis) {
  int64_t last = 0;
  for (const TapRange& taps : axis.taps) last = std::max(last, taps.last);
  return last;
}

// bf16 by way of floats.
class Bf16Runs {
 public:
  explicit Bf16Runs(const KernelRequest& request)
      : used_(request.layout.type() == DataType::kBf16),
        widen_(TILESMITH_DISPATCH(request.cpu.isa, ConvertRuns<uint16_t>)),
        narrow_(TILESMITH_DISPATCH(request.cpu.isa, ConvertRuns<float>)) {}

  // Whether tensors are of bf16 at all.
  bool used() const { return used_; }
  void Read(const ConvertMove<uint16_t>& move) const { widen_(move); }
  void Write(const float* in, uint16_t* out, int64_t count) const {
    narrow_({.in = in, .out = out, .length = count, .padded = count});
  }

 private:
  bool used_;
  void (*widen_)(const ConvertMove<uint16_t>&);
  void (*narrow_)(const ConvertMove<float>&);
};

class PoolKernel : public Kernel {
 public:
  PoolKernel(const KernelRequest& request, const PoolWindow& w)
      : window_(w),
        in_(BlockDimsOf(request.inputs[0], request.layout)),
        out_(BlockDimsOf(request.output, request.layout)),
        rows_(ResolveAxis({w.kh, w.sh, w.dh, w.top, w.bottom}, in_.height, out_.height, w.count_include_pad)),
        columns_(
            ResolveAxis({w.kw, w.sw, w.dw, w.left, w.right}, in_.width, out_.width, w.count_include_pad)),
        column_taps_(LastTap(columns_)),
        loop_(w.kind == PoolKind::kMax ? TILESMITH_DISPATCH(request.cpu.isa, MaxPoolRow)
                                       : TILESMITH_DISPATCH(request.cpu.isa, AveragePoolRow)),
        bf16_(request) {}

  int64_t Tasks(int stage) const override { return Grid(stage).tasks(); }
  TaskGrid Grid(int) const override { return GridOfPieces(out_, out_.width); }
  int64_t ScratchBytes(int threads) const override { return threads * ThreadFloats() * kFloatBytes; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const int64_t row_floats = in_.width * in_.lanes;
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t y = task % out_.height, plane = task / out_.height;
      const int64_t image = plane / out_.blocks, block = plane % out_.blocks;
      const TapRange taps = rows_.taps[y];
      const int64_t first_row = y * window_.sh - window_.top + taps.first * window_.dh;
      PoolRow row;
      const int64_t from = block * in_.block_floats() + (taps.first < taps.last ? first_row * row_floats : 0);
      const int64_t to = block * out_.block_floats() + y * out_.width * out_.lanes;
      row.lanes = out_.lanes;
      row.input_width = in_.width, row.output_width = out_.width;
      row.row_floats = window_.dh * row_floats;
      row.rows = taps.last - taps.first;
      row.stride = window_.sw, row.dilation = window_.dw, row.left = window_.left;
      row.taps = column_taps_;
      row.columns = columns_.taps.data();
      row.column_divisors = columns_.divisors.data();
      row.row_divisor = rows_.divisors[y];
      if (bf16_.used()) {
        auto* const rows = args.scratch_at<float>(range.thread * ThreadFloats() * kFloatBytes);
        bf16_.Read({.in = args.inputs[0].image<uint16_t>(image) + from,
                    .out = rows,
                    .in_pixel_stride = row.row_floats,
                    .out_pixel_stride = row_floats,
                    .pixels = row.rows,
                    .length = row_floats,
                    .padded = row_floats});
        row.input = rows;
        row.output = rows + window_.kh * row_floats;
        row.row_floats = row_floats;
      } else {
        row.input = args.inputs[0].image<float>(image) + from;
        row.output = args.output.image<float>(image) + to;
      }
      loop_(row);
      if (block == out_.blocks - 1 && out_.has_padding()) {
        ZeroLanes(row.output, out_.UsedLanes(block), out_.lanes, out_.width);
      }
      if (bf16_.used())
        bf16_.Write(row.output, args.output.image<uint16_t>(image) + to, out_.width * out_.lanes);
    }
  }

 private:
  static constexpr int64_t kFloatBytes = sizeof(float);
  // A thread's scratch holds the input rows of an output row, and that.
  int64_t ThreadFloats() const {
    return bf16_.used() ? (window_.kh * in_.width + out_.width) * in_.lanes : 0;
  }

  const PoolWindow window_;
  const BlockDims in_, out_;
  const PoolAxis rows_, columns_;
  const int64_t column_taps_;
  void (*const loop_)(const PoolRow&);
  const Bf16Runs bf16_;
};

// Rows first, into scratch, and then their maxima or means, so that threads may read what they wrote; of
// planes all at once. Padding lanes hold zeros, and so do their maxima and means.
template <typename T>
class GlobalPoolKernel : public Kernel {
 public:
  GlobalPoolKernel(const KernelRequest& request, PoolKind kind)
      : in_(BlockDimsOf(request.inputs[0], request.layout)),
        by_rows_(in_.lanes > 1 && in_.height > 1),
        channels_(in_.blocks * in_.lanes),
        pieces_((channels_ + kPieceChannels - 1) / kPieceChannels),
        all_(Loop<T, T>(request, kind)),
        row_(Loop<T, float>(request, kind)),
        rows_(Loop<float, T>(request, kind)) {}

  int Stages() const override { return by_rows_ ? 2 : 1; }
  int64_t Tasks(int stage) const override { return Grid(stage).tasks(); }
  TaskGrid Grid(int stage) const override {
    TaskGrid grid{.images = in_.images, .channels = pieces_, .height = 1};
    if (!by_rows_ || stage > 0) return grid;
    grid.rows = grid.height = in_.height;
    grid.channels_inner = in_.blocks == 1;
    return grid;
  }
  int64_t ScratchBytes(int) const override {
    return by_rows_ ? in_.images * in_.height * channels_ * int64_t{sizeof(float)} : 0;
  }

  void Run(const KernelArgs& args, int stage, TaskRange range) const override {
    for (int64_t task = range.begin; task < range.end; ++task) {
      if (by_rows_ && stage == 0)
        RunRow(args, task);
      else
        RunPiece(args, task / pieces_, task % pieces_);
    }
  }

 private:
  static constexpr int64_t kPieceChannels = 64;
  template <typename In, typename Out>
  using Pool = void (*)(const In*, Out*, int64_t lanes, int64_t stride, int64_t pixels);

  template <typename In, typename Out>
  static Pool<In, Out> Loop(const KernelRequest& request, PoolKind kind) {
    if (kind == PoolKind::kMax) return TILESMITH_DISPATCH(request.cpu.isa, GlobalMaxLanes<In, Out>);
    return TILESMITH_DISPATCH(request.cpu.isa, GlobalAverageLanes<In, Out>);
  }

  // Calls run(channel, lanes, offset of the channel in its image) for those of a piece that lie side by side.
  template <typename Body>
  void ForEachRun(int64_t piece, const Body& body) const {
    const int64_t last = std::min((piece + 1) * kPieceChannels, channels_);
    for (int64_t channel = piece * kPieceChannels; channel < last;) {
      const int64_t block = channel / in_.lanes, lane = channel % in_.lanes;
      const int64_t lanes = std::min(in_.lanes - lane, last - channel);
      body(channel, lanes, block * in_.block_floats() + lane);
      channel += lanes;
    }
  }

  float* RowOf(const KernelArgs& args, int64_t image, int64_t y) const {
    return args.scratch_at<float>(0) + (image * in_.height + y) * channels_;
  }

  void RunRow(const KernelArgs& args, int64_t task) const {
    const bool rows_outer = in_.blocks == 1;
    const int64_t inner = rows_outer ? pieces_ : in_.height, outer = rows_outer ? in_.height : pieces_;
    const int64_t image = task / inner / outer;
    const int64_t y = rows_outer ? task / inner % outer : task % inner;
    ForEachRun(rows_outer ? task % inner : task / inner % outer,
               [&](int64_t channel, int64_t lanes, int64_t offset) {
                 row_(args.inputs[0].image<T>(image) + offset + y * in_.width * in_.lanes,
                      RowOf(args, image, y) + channel, lanes, in_.lanes, in_.width);
               });
  }

  void RunPiece(const KernelArgs& args, int64_t image, int64_t piece) const {
    T* const out = args.output.image<T>(image);
    const int64_t first = piece * kPieceChannels;
    if (by_rows_)
      return rows_(RowOf(args, image, 0) + first, out + first, std::min(kPieceChannels, channels_ - first),
                   channels_, in_.height);
    ForEachRun(piece, [&](int64_t channel, int64_t lanes, int64_t offset) {
      all_(args.inputs[0].image<T>(image) + offset, out + channel, lanes, in_.lanes, in_.pixels());
    });
  }

  const BlockDims in_;
  const bool by_rows_;
  const int64_t channels_;  // padding included
  const int64_t pieces_;    // of one image
  const Pool<T, T> all_;
  const Pool<T, float> row_;
  const Pool<float, T> rows_;
};

}  // namespace

std::unique_ptr<Kernel> MakePoolKernel(const KernelRequest& request, const PoolWindow& window) {
  return std::make_unique<PoolKernel>(request, window);
}

std::unique_ptr<Kernel> MakeGlobalPoolKernel(const KernelRequest& request, PoolKind kind) {
  if (request.layout.type() == DataType::kBf16)
    return std::make_unique<GlobalPoolKernel<uint16_t>>(request, kind);
  return std::make_unique<GlobalPoolKernel<float>>(request, kind);
}

}  // namespace tilesmith
