#include "ops/pool/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "layouts/base/error.h"
#include "layouts/convert_runs.h"
#include "ops/base/import_util.h"
#include "ops/base/rounding.h"
#include "ops/base/saved_op.h"
#include "ops/kernels/block_kernel.h"
#include "ops/pool/pool_indices.h"
#include "ops/pool/pool_loops.h"
#include "ops/pool/quantized_pool.h"

namespace tilesmith {
namespace {

BuiltOp BuildPool(const NodeSpec& spec, PoolKind kind) {
  NeedInputs(spec, 1, 1);
  if (spec.inputs[0].shape.size() == 3) return BuildPoolOfOtherRank(spec);
  const bool image = spec.inputs[0].shape.size() == 4;
  const bool bytes = image && spec.output_names.size() < 2 && IsByte(spec.inputs[0].type);
  const bool fast = (image || spec.output_names.size() < 2) && spec.inputs[0].type == DataType::kF32;
  if (kind == PoolKind::kMax && (spec.output > 0 || !(fast || bytes))) return BuildIndexedMaxPool(spec);
  if (spec.inputs[0].shape.size() != 4) return BuildPoolOfOtherRank(spec);
  const Shape& input = ShapeOfRank(spec, 0, 4);
  if (!spec.Has("kernel_shape")) Refuse(spec, "the attribute kernel_shape is missing");
  const Window w = ImportWindow(spec, spec.Ints("kernel_shape", {}), input[2], input[3]);
  PoolWindow window{kind, w.kh, w.kw, w.sh, w.sw, w.dh, w.dw, w.top, w.left, w.bottom, w.right};
  window.ceil_mode = spec.Int("ceil_mode", 0) != 0;
  window.count_include_pad = kind == PoolKind::kAverage && spec.Int("count_include_pad", 0) != 0;
  if (kind == PoolKind::kMax && bytes) {
    return BuiltWithInputs(std::make_shared<QuantizedMaxPoolOp>(window), 1);
  }
  return BuiltWithInputs(std::make_shared<PoolOp>(window), 1);
}

BuiltOp BuildGlobalPool(const NodeSpec& spec, PoolKind kind) {
  NeedInputs(spec, 1, 1);
  if (spec.inputs[0].shape.size() != 4) {
    return BuildGlobalPoolOfOtherRank(spec, kind == PoolKind::kMax ? "ReduceMax" : "ReduceMean");
  }
  return BuiltWithInputs(std::make_shared<GlobalPoolOp>(kind), 1);
}

int64_t OutputSize(int64_t input, int64_t extent, int64_t stride, int64_t begin, int64_t end,
                   bool ceil_mode) {
  const int64_t room = input + begin + end - extent;
  if (room < 0) return 0;
  int64_t output = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if (ceil_mode && (output - 1) * stride >= input + begin) --output;
  return output;
}

float PoolOne(const PoolWindow& w, const float* plane, const Dims4& in, int64_t y, int64_t x) {
  const int64_t y0 = y * w.sh - w.top, x0 = x * w.sw - w.left;
  const WindowTaps rows = TapsOf(y0, w.kh, w.dh, in.h, w.bottom);
  const WindowTaps columns = TapsOf(x0, w.kw, w.dw, in.w, w.right);
  double sum = 0;
  float largest = -std::numeric_limits<float>::infinity();
  int64_t inside = 0;
  for (int64_t i = rows.first; i < rows.last; ++i) {
    for (int64_t j = columns.first; j < columns.last; ++j) {
      const float value = plane[(y0 + i * w.dh) * in.w + x0 + j * w.dw];
      sum += value;
      largest = std::max(largest, value);  // which passes over a NaN
      ++inside;
    }
  }
  if (w.kind == PoolKind::kMax) return largest;
  const int64_t count = w.count_include_pad ? rows.padded * columns.padded : inside;
  return inside == 0 ? 0.0f : static_cast<float>(sum / count);
}

}  // namespace

WindowTaps TapsOf(int64_t start, int64_t kernel, int64_t dilation, int64_t size, int64_t end_pad) {
  const auto taps_before = [=](int64_t end) {
    return end <= start ? 0 : std::min(kernel, CeilDiv(end - start, dilation));
  };
  const int64_t first = start < 0 ? CeilDiv(-start, dilation) : 0, last = taps_before(size);
  const int64_t padded = taps_before(size + end_pad);
  return first < last ? WindowTaps{first, last, padded} : WindowTaps{0, 0, padded};
}

std::string PoolOp::Signature() const {
  const PoolWindow& w = window_;
  return fmt::format("{} kh{}kw{}sh{}sw{}dh{}dw{} pads {},{},{},{}{}{}", Type(), w.kh, w.kw, w.sh, w.sw, w.dh,
                     w.dw, w.top, w.left, w.bottom, w.right, w.ceil_mode ? " ceil" : "",
                     w.count_include_pad ? " include_pad" : "");
}

Shape PoolOp::InferShape(std::span<const Shape> inputs) const {
  const PoolWindow& w = window_;
  const Shape& in = inputs[0];
  if (in.size() != 4) {
    throw Error(ErrorCode::kBadModel, fmt::format("{} needs a 2-D image, got {}", Type(), ShapeToString(in)));
  }
  const int64_t oh = OutputSize(in[2], (w.kh - 1) * w.dh + 1, w.sh, w.top, w.bottom, w.ceil_mode);
  const int64_t ow = OutputSize(in[3], (w.kw - 1) * w.dw + 1, w.sw, w.left, w.right, w.ceil_mode);
  if (oh < 1 || ow < 1) {
    throw Error(ErrorCode::kBadModel, fmt::format("{}: the window does not fit the padded input {}",
                                                  Signature(), ShapeToString(in)));
  }
  return {in[0], in[1], oh, ow};
}

Tensor PoolOp::Reference(std::span<const Tensor* const> inputs) const {
  const Dims4 in = ToDims4(inputs[0]->shape());
  const Shape shapes[] = {inputs[0]->shape()};
  Tensor output(InferShape(shapes));
  const Dims4 out = ToDims4(output.shape());
  for (int64_t plane = 0; plane < in.n * in.c; ++plane) {
    const float* from = inputs[0]->floats() + plane * in.h * in.w;
    float* to = output.floats() + plane * out.h * out.w;
    for (int64_t y = 0; y < out.h; ++y) {
      for (int64_t x = 0; x < out.w; ++x) to[y * out.w + x] = PoolOne(window_, from, in, y, x);
    }
  }
  return output;
}

double PoolOp::Flops(std::span<const Shape> inputs) const {
  return static_cast<double>(ElementCount(InferShape(inputs))) * window_.kh * window_.kw;
}

std::string GlobalPoolOp::Signature() const { return std::string(Type()) + (keep_dims_ ? "" : " flattened"); }

Shape GlobalPoolOp::InferShape(std::span<const Shape> inputs) const {
  const Shape& in = inputs[0];
  if (in.size() != 4) {
    throw Error(ErrorCode::kBadModel, fmt::format("{} needs a 2-D image, got {}", Type(), ShapeToString(in)));
  }
  return keep_dims_ ? Shape{in[0], in[1], 1, 1} : Shape{in[0], in[1]};
}

Tensor GlobalPoolOp::Reference(std::span<const Tensor* const> inputs) const {
  const Dims4 in = ToDims4(inputs[0]->shape());
  const Shape shapes[] = {inputs[0]->shape()};
  Tensor output(InferShape(shapes));
  const int64_t pixels = in.h * in.w;
  for (int64_t plane = 0; plane < in.n * in.c; ++plane) {
    const float* from = inputs[0]->floats() + plane * pixels;
    double sum = 0;
    float largest = -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < pixels; ++i) {
      sum += from[i];
      largest = std::max(largest, from[i]);  // likewise
    }
    output.floats()[plane] = kind_ == PoolKind::kMax ? largest : static_cast<float>(sum / pixels);
  }
  return output;
}

double GlobalPoolOp::Flops(std::span<const Shape> inputs) const { return ElementCount(inputs[0]); }

// MaxPool, AveragePool, GlobalMaxPool, GlobalAveragePool.
std::vector<OpImporter> PoolImporters() {
  return {
      {"MaxPool", [](const NodeSpec& spec) { return BuildPool(spec, PoolKind::kMax); }, true},
      {"AveragePool", [](const NodeSpec& spec) { return BuildPool(spec, PoolKind::kAverage); }},
      {"GlobalMaxPool", [](const NodeSpec& spec) { return BuildGlobalPool(spec, PoolKind::kMax); }},
      {"GlobalAveragePool", [](const NodeSpec& spec) { return BuildGlobalPool(spec, PoolKind::kAverage); }},
  };
}

namespace {

// One axis of the window, resolved for every output position.
struct PoolAxis {
  std::vector<TapRange> taps;
  std::vector<float> divisors;  // taps that count for the mean; 1 where there are none
};

struct WindowSpan {
  int64_t kernel, stride, dilation, begin, end;
};

PoolAxis ResolveAxis(const WindowSpan& window, int64_t input, int64_t output, bool count_padding) {
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

// PoolOp's formula in any layout, of f32 or bf16, which is rounded once; a task is one output row of one
// block. The mean is a float sum divided once.
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
  bool ShiftsBlocks() const override { return true; }
  int64_t ScratchBytes(int threads) const override { return threads * ThreadFloats() * kFloatBytes; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const int64_t row_floats = in_.width * in_.lanes;
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t y = task % out_.height, plane = task / out_.height;
      const int64_t image = plane / out_.blocks, block = plane % out_.blocks;
      const TapRange taps = rows_.taps[y];
      const int64_t first_row = y * window_.sh - window_.top + taps.first * window_.dh;
      PoolRow row;
      const int64_t bytes = bf16_.used() ? int64_t{sizeof(uint16_t)} : kFloatBytes;
      const int64_t from = block * (in_.block_floats() + args.inputs[0].block_shift / bytes) +
                           (taps.first < taps.last ? first_row * row_floats : 0);
      const int64_t to =
          block * (out_.block_floats() + args.output.block_shift / bytes) + y * out_.width * out_.lanes;
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

// Rows first, into scratch, and then their maxima or means, so that threads may read what they wrote; planes
// at once, in the same order. Padding lanes hold zeros, and so do their maxima and means.
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
  using Pool = void (*)(const In*, Out*, int64_t lanes, int64_t stride, int64_t pixels, int64_t width);

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
                      RowOf(args, image, y) + channel, lanes, in_.lanes, in_.width, in_.width);
               });
  }

  void RunPiece(const KernelArgs& args, int64_t image, int64_t piece) const {
    T* const out = args.output.image<T>(image);
    const int64_t first = piece * kPieceChannels;
    if (by_rows_)
      return rows_(RowOf(args, image, 0) + first, out + first, std::min(kPieceChannels, channels_ - first),
                   channels_, in_.height, in_.height);
    ForEachRun(piece, [&](int64_t channel, int64_t lanes, int64_t offset) {
      all_(args.inputs[0].image<T>(image) + offset, out + channel, lanes, in_.lanes, in_.pixels(), in_.width);
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

std::unique_ptr<Kernel> PoolOp::MakeKernel(const KernelRequest& request) const {
  return std::make_unique<PoolKernel>(request, window_);
}

std::unique_ptr<Kernel> GlobalPoolOp::MakeKernel(const KernelRequest& request) const {
  if (request.layout.type() == DataType::kBf16)
    return std::make_unique<GlobalPoolKernel<uint16_t>>(request, kind_);
  return std::make_unique<GlobalPoolKernel<float>>(request, kind_);
}

Tensor PoolOp::RoundingBound(const OpRun& run) const {
  if (window_.kind != PoolKind::kAverage) return RoundedTwice(run);
  const auto terms = static_cast<double>(window_.kh * window_.kw);
  return BoundsOf(OfAbsolutes(*this, run.inputs), 2 + SumRoundings(terms));
}

Tensor GlobalPoolOp::RoundingBound(const OpRun& run) const {
  if (kind_ != PoolKind::kAverage) return RoundedTwice(run);
  const Shape& shape = run.inputs[0]->shape();
  return BoundsOf(OfAbsolutes(*this, run.inputs), 2 + SumRoundings(static_cast<double>(shape[2] * shape[3])));
}

std::vector<SavedOp> PoolOps() { return {Saved<PoolOp>("Pool"), Saved<GlobalPoolOp>("GlobalPool")}; }

}  // namespace tilesmith
