#include "ops/quantize/quantize_kernel.h"

#include <algorithm>

#include "layouts/base/check.h"
#include "ops/base/elements.h"
#include "ops/kernels/block_kernel.h"
#include "ops/quantize/quantize_loops.h"
#include "ops/quantize/zero_padding.h"

namespace tilesmith {
namespace {

// A tensor as rows of adjacent elements: `rows` of them in each image, of `columns` each. Row r has scales
// from number r / repeat % groups * stride on, element i of it number i * step further.
struct ScaledRows {
  int64_t images = 1, rows = 1, columns = 1;
  int64_t repeat = 1, groups = 1, stride = 0, step = 0;
};

ScaledRows RowsOf(const Shape& shape, const Layout& layout, const Quantization& quantization) {
  ScaledRows result;
  result.images = shape.empty() ? 1 : shape[0];
  if (quantization.per_tensor()) {
    result.columns = BatchStride(shape, layout);
  } else if (layout.is_nchw() && quantization.axis == 0) {
    result.images = 1;  // an image has one scale: all are one run of rows
    result.rows = shape[0];
    result.columns = BatchStride(shape, layout);
    result.groups = shape[0];
    result.stride = 1;
  } else if (layout.is_nchw()) {
    const size_t axis = static_cast<size_t>(quantization.axis);
    const int64_t inner = DenseStrides(shape)[axis], size = shape[axis];
    const int64_t outer = ElementCount(Shape(shape.begin() + 1, shape.begin() + axis));
    const bool last = inner == 1;
    result.rows = last ? outer : outer * size;
    result.columns = last ? size : inner;
    result.groups = last ? 1 : size;
    result.stride = last ? 0 : 1;
    result.step = last ? 1 : 0;
  } else {
    const BlockDims dims = BlockDimsOf(shape, layout);
    result.rows = dims.blocks * dims.pixels();
    result.columns = dims.lanes;
    result.repeat = dims.pixels();
    result.groups = dims.blocks;
    result.stride = dims.lanes;
    result.step = 1;
  }
  return result;
}

// Pieces of rows, or several whole rows, are a task.
template <typename From, typename To>
class ScalingKernel : public Kernel {
 public:
  using Row = void (*)(const From*, To*, const ScaledRow&);

  ScalingKernel(const KernelRequest& request, const Quantization& quantization, Row row)
      : dims_(BlockDimsOf(request.output, request.layout)),
        along_images_(!quantization.per_tensor() && request.layout.is_nchw() && quantization.axis == 0),
        rows_(RowsOf(request.output, request.layout, quantization)),
        scales_(quantization.scales),
        zero_points_(quantization.zero_points),
        columns_(std::min(std::max<int64_t>(rows_.columns, 1), kPieceElements)),
        pieces_(CeilDiv(rows_.columns, columns_)),
        rows_per_task_(std::max<int64_t>(kPieceElements / columns_, 1)),
        row_(row) {
    // Lanes that hold no channel take any scale, as they are zeroed.
    if (quantization.per_tensor() || request.layout.is_nchw()) return;
    scales_.resize(dims_.blocks * dims_.lanes, 1.0f);
    zero_points_.resize(scales_.size(), 0);
  }

  int64_t Tasks(int) const override { return rows_.images * CeilDiv(rows_.rows, rows_per_task_) * pieces_; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const int64_t groups = CeilDiv(rows_.rows, rows_per_task_);
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t piece = task % pieces_, group = task / pieces_ % groups, image = task / pieces_ / groups;
      const int64_t end = std::min((group + 1) * rows_per_task_, rows_.rows);
      for (int64_t r = group * rows_per_task_; r < end; ++r) RunRow(args, image, r, piece * columns_);
    }
  }

 private:
  static constexpr int64_t kPieceElements = 8192;

  void RunRow(const KernelArgs& args, int64_t image, int64_t r, int64_t column) const {
    const int64_t first = r / rows_.repeat % rows_.groups * rows_.stride;
    const int64_t count = std::min(columns_, rows_.columns - column);
    const int64_t n = along_images_ ? r : image, at = (along_images_ ? 0 : r * rows_.columns) + column;
    To* const out = args.output.image<To>(n) + at;
    const int64_t offset = first + column * rows_.step;
    row_(args.inputs[0].image<From>(n) + at, out,
         {count, &scales_[offset], &zero_points_[offset], rows_.step});
    ZeroPadding(dims_, out, at, count);
  }

  const BlockDims dims_;
  const bool along_images_;
  const ScaledRows rows_;
  std::vector<float> scales_;
  std::vector<int32_t> zero_points_;
  const int64_t columns_, pieces_, rows_per_task_;
  const Row row_;
};

template <typename Stored>
std::unique_ptr<Kernel> QuantizeTo(const KernelRequest& request, const Quantization& quantization) {
  return std::make_unique<ScalingKernel<float, Stored>>(
      request, quantization, TILESMITH_DISPATCH(request.cpu.isa, QuantizeRow<Stored>));
}

template <typename Stored>
std::unique_ptr<Kernel> DequantizeFrom(const KernelRequest& request, const Quantization& quantization) {
  return std::make_unique<ScalingKernel<Stored, float>>(
      request, quantization, TILESMITH_DISPATCH(request.cpu.isa, DequantizeRow<Stored>));
}

}  // namespace

std::unique_ptr<Kernel> MakeQuantizeKernel(const KernelRequest& request, const Quantization& quantization) {
  switch (quantization.type) {
    case DataType::kU8:
      return QuantizeTo<uint8_t>(request, quantization);
    case DataType::kI8:
      return QuantizeTo<int8_t>(request, quantization);
    case DataType::kU16:
      return QuantizeTo<uint16_t>(request, quantization);
    default:
      TILESMITH_CHECK(quantization.type == DataType::kI16);
      return QuantizeTo<int16_t>(request, quantization);
  }
}

std::unique_ptr<Kernel> MakeDequantizeKernel(const KernelRequest& request, const Quantization& quantization) {
  switch (quantization.type) {
    case DataType::kU8:
      return DequantizeFrom<uint8_t>(request, quantization);
    case DataType::kI8:
      return DequantizeFrom<int8_t>(request, quantization);
    case DataType::kU16:
      return DequantizeFrom<uint16_t>(request, quantization);
    case DataType::kI16:
      return DequantizeFrom<int16_t>(request, quantization);
    default:
      TILESMITH_CHECK(quantization.type == DataType::kI32);
      return DequantizeFrom<int32_t>(request, quantization);
  }
}

}  // namespace tilesmith
