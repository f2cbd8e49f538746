#include "ops/pool/quantized_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "layouts/base/sizes.h"
#include "ops/base/saved_op.h"
#include "ops/kernels/block_kernel.h"
#include "ops/quantize/byte_loops.h"

namespace tilesmith {
namespace {

// Rows of a block of channels are tasks.
template <typename Byte>
class MaxPoolBytesKernel : public Kernel {
 public:
  MaxPoolBytesKernel(const KernelRequest& request, const PoolWindow& window)
      : window_(window),
        in_(BlockDimsOf(request.inputs[0], request.layout)),
        out_(BlockDimsOf(request.output, request.layout)),
        maximize_(TILESMITH_DISPATCH(request.cpu.isa, MaximizeBytes<Byte>)),
        largest_of_taps_(TILESMITH_DISPATCH(request.cpu.isa, LargestOfTaps<Byte>)) {}

  int64_t Tasks(int stage) const override { return Grid(stage).tasks(); }
  TaskGrid Grid(int) const override { return GridOfPieces(out_, out_.width); }
  bool ShiftsBlocks() const override { return true; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t y = task % out_.height, plane = task / out_.height;
      const int64_t image = plane / out_.blocks, block = plane % out_.blocks;
      const Byte* const in =
          args.inputs[0].image<Byte>(image) + block * (in_.block_floats() + args.inputs[0].block_shift);
      Byte* const out = args.output.image<Byte>(image) +
                        block * (out_.block_floats() + args.output.block_shift) + y * out_.width * out_.lanes;
      if (out_.lanes == 1) {
        RunPlainRow(in, y, out);
      } else {
        RunRow(in, y, out_.UsedLanes(block), out);
      }
    }
  }

 private:
  // Tap by tap, as channels are planes.
  void RunPlainRow(const Byte* in, int64_t y, Byte* out) const {
    const PoolWindow& w = window_;
    const WindowTaps rows = TapsOf(y * w.sh - w.top, w.kh, w.dh, in_.height, 0);
    std::fill_n(out, out_.width, std::numeric_limits<Byte>::lowest());
    for (int64_t i = rows.first; i < rows.last; ++i) {
      const Byte* const row = in + (y * w.sh - w.top + i * w.dh) * in_.width;
      for (int64_t j = 0; j < w.kw; ++j) {
        const int64_t from = j * w.dw - w.left;  // the column that the first output sees
        const int64_t first = from < 0 ? CeilDiv(-from, w.sw) : 0;
        const int64_t last = from >= in_.width ? 0 : std::min((in_.width - 1 - from) / w.sw + 1, out_.width);
        if (first >= last) continue;
        if (w.sw == 1) {
          maximize_(row + from + first, out + first, last - first);
        } else {
          for (int64_t x = first; x < last; ++x) out[x] = std::max(out[x], row[from + x * w.sw]);
        }
      }
    }
  }

  void RunRow(const Byte* in, int64_t y, int64_t channels, Byte* out) const {
    const PoolWindow& w = window_;
    const WindowTaps rows = TapsOf(y * w.sh - w.top, w.kh, w.dh, in_.height, 0);
    const int64_t row = (y * w.sh - w.top + rows.first * w.dh) * in_.width;
    for (int64_t x = 0; x < out_.width; ++x, out += out_.lanes) {
      const WindowTaps columns = TapsOf(x * w.sw - w.left, w.kw, w.dw, in_.width, 0);
      const TapGrid taps{.rows = rows.last - rows.first,
                         .columns = columns.last - columns.first,
                         .row_step = w.dh * in_.width * in_.lanes,
                         .column_step = w.dw * in_.lanes};
      const int64_t pixel = row + x * w.sw - w.left + columns.first * w.dw;
      const bool any = taps.rows > 0 && taps.columns > 0;
      largest_of_taps_(any ? in + pixel * in_.lanes : in, taps, out, channels);
      std::fill_n(out + channels, out_.lanes - channels, Byte{});
    }
  }

  const PoolWindow window_;
  const BlockDims in_, out_;
  void (*const maximize_)(const Byte*, Byte*, int64_t);
  void (*const largest_of_taps_)(const Byte*, const TapGrid&, Byte*, int64_t);
};

}  // namespace

QuantizedMaxPoolOp::QuantizedMaxPoolOp(const PoolWindow& window) : pool_(window) {
  TILESMITH_CHECK(window.kind == PoolKind::kMax);
}

OpPtr QuantizedMaxPoolOp::Of(const Op& op, const ByteForm& form) {
  const auto* pool = dynamic_cast<const PoolOp*>(&op);
  if (pool == nullptr || pool->window().kind != PoolKind::kMax || !form.KeepsBytes()) return nullptr;
  return std::make_shared<QuantizedMaxPoolOp>(pool->window());
}

std::string QuantizedMaxPoolOp::Signature() const { return fmt::format("Quantized{}", pool_.Signature()); }

DataType QuantizedMaxPoolOp::OutputType(std::span<const DataType> inputs) const {
  if (KernelTakes(inputs)) return inputs[0];
  throw Error(ErrorCode::kBadModel,
              fmt::format("{} takes u8 or i8, got {}", Type(), DataTypeName(inputs[0])));
}

// Bytes are floats, so that the pool of floats says what the result is.
Tensor QuantizedMaxPoolOp::Reference(std::span<const Tensor* const> inputs) const {
  Tensor reals(inputs[0]->shape());
  Tensor out;
  VisitType(inputs[0]->type(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    std::transform(inputs[0]->data<T>(), inputs[0]->data<T>() + reals.size(), reals.floats(),
                   [](T value) { return static_cast<float>(value); });
    const Tensor* pooled_inputs[] = {&reals};
    const Tensor pooled = pool_.Reference(pooled_inputs);
    out = Tensor(pooled.shape(), Layout::Nchw(inputs[0]->type()));
    std::transform(pooled.floats(), pooled.floats() + pooled.size(), out.data<T>(),
                   [](float value) { return ConvertElement<T>(value); });
  });
  return out;
}

bool QuantizedMaxPoolOp::KernelTakes(std::span<const DataType> inputs) const { return IsByte(inputs[0]); }

std::unique_ptr<Kernel> QuantizedMaxPoolOp::MakeKernel(const KernelRequest& request) const {
  if (request.layout.type() == DataType::kU8)
    return std::make_unique<MaxPoolBytesKernel<uint8_t>>(request, pool_.window());
  return std::make_unique<MaxPoolBytesKernel<int8_t>>(request, pool_.window());
}
namespace {

// A window along one axis, at one position of the output.
struct AxisTaps {
  int64_t first, last, counted;
};

AxisTaps RowTaps(const PoolWindow& w, int64_t y, int64_t height) {
  const WindowTaps taps = TapsOf(y * w.sh - w.top, w.kh, w.dh, height, w.bottom);
  return {taps.first, taps.last, w.count_include_pad ? taps.padded : taps.last - taps.first};
}
AxisTaps ColumnTaps(const PoolWindow& w, int64_t x, int64_t width) {
  const WindowTaps taps = TapsOf(x * w.sw - w.left, w.kw, w.dw, width, w.right);
  return {taps.first, taps.last, w.count_include_pad ? taps.padded : taps.last - taps.first};
}
float Divisor(const AxisTaps& rows, const AxisTaps& columns) {
  return static_cast<float>(std::max<int64_t>(rows.counted * columns.counted, 1));
}

// Rows of a block of channels are tasks.
template <typename Byte>
class AveragePoolBytesKernel : public Kernel {
 public:
  AveragePoolBytesKernel(const KernelRequest& request, const QuantizedAveragePoolParams& params)
      : window_(params.window),
        in_(BlockDimsOf(request.inputs[0], request.layout)),
        out_(BlockDimsOf(request.output, request.layout)),
        input_zero_(params.input.zero_points[0]),
        terms_{.scale = params.input.scales[0],
               .out_scale = params.output.scales[0],
               .zero = params.output.zero_points[0],
               .low = params.limits.low,
               .high = params.limits.high},
        mean_(TILESMITH_DISPATCH(request.cpu.isa, MeanOfTaps<Byte>)) {}

  int64_t Tasks(int stage) const override { return Grid(stage).tasks(); }
  TaskGrid Grid(int) const override { return GridOfPieces(out_, out_.width); }
  bool ShiftsBlocks() const override { return true; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t y = task % out_.height, plane = task / out_.height;
      const int64_t image = plane / out_.blocks, block = plane % out_.blocks;
      const Byte* const in =
          args.inputs[0].image<Byte>(image) + block * (in_.block_floats() + args.inputs[0].block_shift);
      Byte* out = args.output.image<Byte>(image) + block * (out_.block_floats() + args.output.block_shift) +
                  y * out_.width * out_.lanes;
      const AxisTaps rows = RowTaps(window_, y, in_.height);
      for (int64_t x = 0; x < out_.width; ++x, out += out_.lanes)
        RunPixel(in, y, x, rows, out_.UsedLanes(block), out);
    }
  }

 private:
  void RunPixel(const Byte* in, int64_t y, int64_t x, const AxisTaps& rows, int64_t channels,
                Byte* out) const {
    const PoolWindow& w = window_;
    const AxisTaps columns = ColumnTaps(w, x, in_.width);
    const int64_t top = y * w.sh - w.top + rows.first * w.dh, left = x * w.sw - w.left + columns.first * w.dw,
                  row = in_.width * in_.lanes;
    const TapGrid taps = {rows.last - rows.first, columns.last - columns.first, w.dh * row, w.dw * in_.lanes};
    MeanTerms terms = terms_;
    terms.start = -input_zero_ * static_cast<int32_t>(taps.rows * taps.columns);
    terms.divisor = Divisor(rows, columns);
    mean_(in + top * row + left * in_.lanes, taps, out, channels, terms);
    std::fill_n(out + channels, out_.lanes - channels, Byte{});
  }

  const PoolWindow window_;
  const BlockDims in_, out_;
  const int32_t input_zero_;
  const MeanTerms terms_;
  void (*const mean_)(const Byte*, const TapGrid&, Byte*, int64_t, const MeanTerms&);
};

}  // namespace

QuantizedAveragePoolOp::QuantizedAveragePoolOp(QuantizedAveragePoolParams params)
    : params_(std::move(params)), pool_(params_.window) {
  const auto& [window, input, output, limits] = params_;
  TILESMITH_CHECK(window.kind == PoolKind::kAverage && window.kh <= kMaxTaps / window.kw);
  TILESMITH_CHECK(IsByte(input.type) && input.per_tensor() && input.type == output.type &&
                  output.per_tensor());
  const StoredRange range = RangeOf(output.type);
  TILESMITH_CHECK(range.low <= limits.low && limits.low <= limits.high && limits.high <= range.high);
}

OpPtr QuantizedAveragePoolOp::Of(const Op& op, const ByteForm& form) {
  std::optional<PoolWindow> window;
  if (const auto* pool = dynamic_cast<const PoolOp*>(&op)) window = pool->window();
  if (const auto* global = dynamic_cast<const GlobalPoolOp*>(&op);
      global != nullptr && global->keep_dims() && form.shapes[0].size() == 4)
    window = PoolWindow{.kind = global->kind(), .kh = form.shapes[0][2], .kw = form.shapes[0][3]};
  if (!window || window->kind != PoolKind::kAverage || form.inputs[0].type != form.output.type)
    return nullptr;
  if (window->kh > kMaxTaps / window->kw) return nullptr;
  return std::make_shared<QuantizedAveragePoolOp>(
      QuantizedAveragePoolParams{*window, form.inputs[0], form.output, form.limits});
}

std::string QuantizedAveragePoolOp::Signature() const {
  return fmt::format("Quantized{}{}", pool_.Signature(), Describe(params_.output));
}

DataType QuantizedAveragePoolOp::OutputType(std::span<const DataType> inputs) const {
  if (KernelTakes(inputs)) return params_.output.type;
  throw Error(ErrorCode::kBadModel, fmt::format("{} takes {}, it got {}", Type(),
                                                DataTypeName(params_.input.type), DataTypeName(inputs[0])));
}

Tensor QuantizedAveragePoolOp::Reference(std::span<const Tensor* const> inputs) const {
  const auto& [w, input, output, limits] = params_;
  const Dims4 in = ToDims4(inputs[0]->shape());
  const Shape shapes[] = {inputs[0]->shape()};
  Tensor result(InferShape(shapes), Layout::Nchw(output.type));
  const Dims4 out = ToDims4(result.shape());
  VisitType(output.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    for (int64_t at = 0; at < result.size(); ++at) {
      const int64_t x = at % out.w, y = at / out.w % out.h, plane = at / (out.h * out.w);
      const AxisTaps rows = RowTaps(w, y, in.h), columns = ColumnTaps(w, x, in.w);
      int32_t sum = 0;
      for (int64_t i = rows.first; i < rows.last; ++i) {
        for (int64_t j = columns.first; j < columns.last; ++j) {
          const int64_t row = y * w.sh - w.top + i * w.dh, column = x * w.sw - w.left + j * w.dw;
          sum += inputs[0]->data<T>()[(plane * in.h + row) * in.w + column] - input.zero_points[0];
        }
      }
      const float mean = static_cast<float>(sum) * input.scales[0] / Divisor(rows, columns);
      const int32_t stored =
          QuantizedValue(mean, output.scales[0], output.zero_points[0], RangeOf(output.type));
      result.data<T>()[at] = static_cast<T>(std::clamp(stored, limits.low, limits.high));
    }
  });
  return result;
}

std::unique_ptr<Kernel> QuantizedAveragePoolOp::MakeKernel(const KernelRequest& request) const {
  if (request.layout.type() == DataType::kU8)
    return std::make_unique<AveragePoolBytesKernel<uint8_t>>(request, params_);
  return std::make_unique<AveragePoolBytesKernel<int8_t>>(request, params_);
}

std::vector<SavedOp> QuantizedPoolOps() {
  return {Saved<QuantizedMaxPoolOp>("QuantizedMaxPool"),
          Saved<QuantizedAveragePoolOp>("QuantizedAveragePool")};
}

}  // namespace tilesmith
