#include "ops/quantize/quantize.h"

#include <fmt/format.h>

#include <algorithm>

#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "layouts/base/sizes.h"
#include "ops/base/elements.h"
#include "ops/base/import_util.h"
#include "ops/base/node_writer.h"
#include "ops/base/onnx_type.h"
#include "ops/base/saved_op.h"
#include "ops/kernels/block_kernel.h"
#include "ops/quantize/quantize_loops.h"
#include "ops/quantize/zero_padding.h"

namespace tilesmith {
namespace {

bool IsStored(DataType type) {
  return type == DataType::kU8 || type == DataType::kI8 || type == DataType::kU16 || type == DataType::kI16;
}

int64_t AxisOf(const NodeSpec& spec) {
  const int64_t rank = std::ssize(spec.inputs[0].shape);
  const int64_t axis = spec.Int("axis", 1);
  // The default is no axis of a vector, which then has one scale.
  if (!spec.Has("axis") && axis >= rank) return 0;
  return ElementCount(spec.inputs[1].shape) == 1 ? 0 : NormalAxis(spec, axis, static_cast<size_t>(rank));
}

// Neighbours along the axis that share a scale; 0: not in blocks.
int64_t BlockOf(const NodeSpec& spec, int64_t axis) {
  const int64_t block = spec.Int("block_size", 0);
  if (block < 0) Refuse(spec, fmt::format("block_size is {}, it must not be negative", block));
  const Shape &shape = spec.inputs[0].shape, &scales = spec.inputs[1].shape;
  if (block == 0 || ElementCount(scales) == 1) return 0;
  if (scales != BlockedShape(shape, axis, block)) {
    Refuse(spec, fmt::format("scales {} do not fit {} in blocks of {} along axis {}", ShapeToString(scales),
                             ShapeToString(shape), block, axis));
  }
  return block;
}

// The node's Quantization, without scales where they are known in a run only.
Quantization ImportQuantization(const NodeSpec& spec, DataType type) {
  const int64_t axis = AxisOf(spec), block = BlockOf(spec, axis);
  if (spec.inputs[1].shape.size() > 1 && block == 0 && ElementCount(spec.inputs[1].shape) != 1) {
    Refuse(spec, fmt::format("its scales have the shape {}, and no block_size",
                             ShapeToString(spec.inputs[1].shape)));
  }
  if (!IsKnown(spec, 1) || !IsKnown(spec, 2)) return {.type = type, .axis = axis, .block = block};
  const Quantization quantization =
      QuantizationOf(spec.Constant(1), spec.HasInput(2) ? &spec.Constant(2) : nullptr, type, axis, block);
  CheckFits(quantization, spec.inputs[0].shape);
  return quantization;
}

template <typename LinearOp>
BuiltOp BuildLinear(const NodeSpec& spec, DataType type) {
  Quantization quantization = ImportQuantization(spec, type);
  const int inputs = !quantization.scales.empty() ? 1 : spec.HasInput(2) ? 3 : 2;
  return BuiltWithInputs(std::make_shared<LinearOp>(std::move(quantization)), inputs);
}

// ONNX's number of the type that is quantised to.
int64_t StoredNumber(const NodeSpec& spec) {
  const int64_t wanted = spec.Int("output_dtype", 0);
  if (wanted != 0) return wanted;
  if (!spec.HasInput(2)) return OnnxTypeNumber(DataType::kU8);
  const NodeInput& zero_point = spec.inputs[2];
  return zero_point.narrow != 0 ? zero_point.narrow : OnnxTypeNumber(zero_point.type);
}

// Input `index`, a scale or zero point, in a shape that broadcasts to what is quantised.
std::string SpreadOverBlocks(const NodeSpec& spec, NodeWriter& writer, size_t index,
                             const std::string& values) {
  const Shape& shape = spec.inputs[0].shape;
  if (ElementCount(spec.inputs[index].shape) == 1) return writer.Reshape(values, {});
  const int64_t axis = AxisOf(spec), block = BlockOf(spec, axis);
  if (block == 0) {
    Shape along(shape.size(), 1);
    along[axis] = shape[axis];
    return writer.Reshape(values, along);
  }
  Shape merged = BlockedShape(shape, axis, block), repeated = merged;
  merged[axis] = (Checked(merged[axis]) * block).value();
  repeated.insert(repeated.begin() + axis + 1, block);
  const std::string column = writer.Unsqueeze(values, {axis + 1});
  std::string all = writer.Reshape(writer.Add("Expand", {column, writer.Ints(repeated)}), merged);
  if (merged == shape) return all;
  return writer.Add("Slice", {all, writer.Ints({0}), writer.Ints({shape[axis]}), writer.Ints({axis})});
}

// Integers narrower than their bytes, which saturate at the ends of their own range.
BuiltOp BuildNarrowQuantize(const NodeSpec& spec, const NarrowType& narrow) {
  NodeWriter writer(spec);
  Attributes attributes = spec.attributes;
  attributes.insert_or_assign("output_dtype", int64_t{OnnxTypeNumber(narrow.unpacked)});
  const auto bound = [&](int32_t value) {
    Tensor tensor({}, Layout::Nchw(narrow.unpacked));
    *reinterpret_cast<uint8_t*>(tensor.raw()) = static_cast<uint8_t>(value);
    return writer.Constant(std::move(tensor));
  };
  const std::string bytes = writer.Add("QuantizeLinear", spec.input_names, std::move(attributes));
  writer.Add("Max", {writer.Add("Min", {bytes, bound(narrow.high)}), bound(narrow.low)}, {}, writer.Out(0));
  return writer.Take();
}

BuiltOp BuildQuantize(const NodeSpec& spec) {
  NeedInputs(spec, 2, 3);
  const int64_t number = StoredNumber(spec);
  if (const NarrowType* narrow = NarrowTypeOf(number); narrow && IsInteger(narrow->unpacked))
    return BuildNarrowQuantize(spec, *narrow);
  const std::optional<DataType> type = TypeOfOnnx(number);
  if (!type || !IsStored(*type))
    Refuse(spec, fmt::format("numbers of type {} are not quantized to", OnnxTypeName(number)));
  const int64_t precision = spec.Int("precision", 0);  // what is said to be of 16 bits is computed in f32
  const std::optional<DataType> computed = TypeOfOnnx(precision);
  if (precision != 0 && !(computed && IsFloating(*computed)))
    Refuse(spec, fmt::format("precision is {}", OnnxTypeName(precision)));
  if (spec.inputs[0].type == DataType::kF32) return BuildLinear<QuantizeLinearOp>(spec, *type);
  if (spec.inputs[0].type != DataType::kI32) Refuse(spec, "integers other than i32 are not supported");
  NodeWriter writer(spec);
  const int64_t floats = OnnxTypeNumber(DataType::kF32);
  std::vector<std::string> inputs = {writer.Add("Cast", {writer.In(0)}, {{"to", floats}}), writer.In(1)};
  if (spec.HasInput(2)) inputs.push_back(writer.In(2));
  writer.Add("QuantizeLinear", std::move(inputs), spec.attributes, writer.Out(0));
  return writer.Take();
}

// Numbers with an exponent that were unpacked to floats.
BuiltOp DequantizeFloats(const NodeSpec& spec) {
  NodeWriter writer(spec);
  std::string x = writer.In(0);
  if (spec.HasInput(2)) x = writer.Add("Sub", {x, SpreadOverBlocks(spec, writer, 2, writer.In(2))});
  writer.Add("Mul", {x, SpreadOverBlocks(spec, writer, 1, writer.In(1))}, {}, writer.Out(0));
  return writer.Take();
}

BuiltOp BuildDequantize(const NodeSpec& spec) {
  NeedInputs(spec, 2, 3);
  const DataType type = spec.inputs[0].type;
  const bool floats = type == DataType::kF32 && spec.inputs[0].constant != nullptr;
  if (!IsStored(type) && type != DataType::kI32 && !floats) {
    Refuse(spec, fmt::format("numbers of type {} are not dequantized", DataTypeName(type)));
  }
  const int64_t wanted = spec.Int("output_dtype", 0);
  const std::optional<DataType> real = wanted == 0 ? spec.inputs[1].type : TypeOfOnnx(wanted);
  if (!real || !IsFloating(*real))
    Refuse(spec, fmt::format("numbers are not dequantized to {}", OnnxTypeName(wanted)));
  return floats ? DequantizeFloats(spec) : BuildLinear<DequantizeLinearOp>(spec, type);
}

}  // namespace

std::string LinearQuantizationOp::Signature() const {
  return fmt::format(
      "{}{}", Type(),
      is_constant()
          ? Describe(quantization_)
          : fmt::format(
                " {} along {}{} by inputs", DataTypeName(quantization_.type), quantization_.axis,
                quantization_.block == 0 ? "" : fmt::format(" in blocks of {}", quantization_.block)));
}

Shape LinearQuantizationOp::InferShape(std::span<const Shape> inputs) const {
  if (is_constant()) CheckFits(quantization_, inputs[0]);
  return inputs[0];
}

double LinearQuantizationOp::Flops(std::span<const Shape> inputs) const {
  return 2 * ElementCount(inputs[0]);
}

bool LinearQuantizationOp::RunsIn(const Layout& layout, std::span<const Shape> inputs) const {
  if (layout.is_nchw()) return true;
  const bool fits =
      quantization_.per_tensor() || (is_constant() && quantization_.axis == 1 && quantization_.block == 0);
  return fits && inputs[0].size() <= 4;
}

bool LinearQuantizationOp::KernelTakes(std::span<const DataType>) const {
  return is_constant() && quantization_.block == 0;
}

Quantization LinearQuantizationOp::Resolved(std::span<const Tensor* const> inputs) const {
  if (is_constant()) return quantization_;
  const Quantization resolved = QuantizationOf(*inputs[1], inputs.size() > 2 ? inputs[2] : nullptr,
                                               quantization_.type, quantization_.axis, quantization_.block);
  CheckFits(resolved, inputs[0]->shape());
  return resolved;
}

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

// The same of images whose blocks are large, by rows of each: in regions they are not all there.
template <typename From, typename To>
class BlockScalingKernel : public BlockKernel {
 public:
  using Row = void (*)(const From*, To*, const ScaledRow&);

  BlockScalingKernel(const KernelRequest& request, const Quantization& quantization, Row row)
      : BlockKernel(BlockDimsOf(request.output, request.layout)),
        scales_(quantization.scales),
        zero_points_(quantization.zero_points),
        by_lane_(!quantization.per_tensor() && dims().lanes > 1),
        row_(row) {
    scales_.resize(dims().blocks * dims().lanes, quantization.per_tensor() ? scales_[0] : 1.0f);
    zero_points_.resize(scales_.size(), quantization.per_tensor() ? zero_points_[0] : 0);
  }

  static bool Takes(const KernelRequest& request, const Quantization& quantization) {
    constexpr int64_t kMinBlock = 4096;
    return request.output.size() == 4 && (quantization.per_tensor() || quantization.axis == 1) &&
           BlockDimsOf(request.output, request.layout).block_floats() >= kMinBlock;
  }

 protected:
  void RunPiece(const KernelArgs& args, const BlockPiece& piece) const override {
    const From* const in = At<From>(args.inputs[0], piece);
    To* const out = At<To>(args.output, piece);
    const int64_t lanes = dims().lanes, columns = by_lane_ ? lanes : piece.pixels * lanes;
    const float* const scale = &scales_[piece.block * lanes];
    const int32_t* const zero_point = &zero_points_[piece.block * lanes];
    for (int64_t at = 0; at < piece.pixels * lanes; at += columns)
      row_(in + at, out + at, {columns, scale, zero_point, by_lane_ ? 1 : 0});
    ZeroPadding(dims(), piece, out);
  }

 private:
  std::vector<float> scales_;
  std::vector<int32_t> zero_points_;
  const bool by_lane_;
  const Row row_;
};

template <typename From, typename To>
std::unique_ptr<Kernel> MakeScalingKernel(const KernelRequest& request, const Quantization& quantization,
                                          void (*row)(const From*, To*, const ScaledRow&)) {
  if (BlockScalingKernel<From, To>::Takes(request, quantization))
    return std::make_unique<BlockScalingKernel<From, To>>(request, quantization, row);
  return std::make_unique<ScalingKernel<From, To>>(request, quantization, row);
}

template <typename Stored>
std::unique_ptr<Kernel> QuantizeTo(const KernelRequest& request, const Quantization& quantization) {
  return MakeScalingKernel<float, Stored>(request, quantization,
                                          TILESMITH_DISPATCH(request.cpu.isa, QuantizeRow<Stored>));
}

template <typename Stored>
std::unique_ptr<Kernel> DequantizeFrom(const KernelRequest& request, const Quantization& quantization) {
  return MakeScalingKernel<Stored, float>(request, quantization,
                                          TILESMITH_DISPATCH(request.cpu.isa, DequantizeRow<Stored>));
}

}  // namespace

DataType QuantizeLinearOp::OutputType(std::span<const DataType> inputs) const {
  if (inputs[0] != DataType::kF32) throw Error(ErrorCode::kBadModel, "only floats are quantized");
  return quantization().type;
}

Tensor QuantizeLinearOp::Reference(std::span<const Tensor* const> inputs) const {
  return Quantized(*inputs[0], Resolved(inputs));
}

std::unique_ptr<Kernel> QuantizeLinearOp::MakeKernel(const KernelRequest& request) const {
  switch (quantization().type) {
    case DataType::kU8:
      return QuantizeTo<uint8_t>(request, quantization());
    case DataType::kI8:
      return QuantizeTo<int8_t>(request, quantization());
    case DataType::kU16:
      return QuantizeTo<uint16_t>(request, quantization());
    default:
      TILESMITH_CHECK(quantization().type == DataType::kI16);
      return QuantizeTo<int16_t>(request, quantization());
  }
}

DataType DequantizeLinearOp::OutputType(std::span<const DataType> inputs) const {
  if (inputs[0] != quantization().type) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("its input is of type {} instead of {}", DataTypeName(inputs[0]),
                            DataTypeName(quantization().type)));
  }
  return DataType::kF32;
}

Tensor DequantizeLinearOp::Reference(std::span<const Tensor* const> inputs) const {
  return Dequantized(*inputs[0], Resolved(inputs));
}

std::unique_ptr<Kernel> DequantizeLinearOp::MakeKernel(const KernelRequest& request) const {
  switch (quantization().type) {
    case DataType::kU8:
      return DequantizeFrom<uint8_t>(request, quantization());
    case DataType::kI8:
      return DequantizeFrom<int8_t>(request, quantization());
    case DataType::kU16:
      return DequantizeFrom<uint16_t>(request, quantization());
    case DataType::kI16:
      return DequantizeFrom<int16_t>(request, quantization());
    default:
      TILESMITH_CHECK(quantization().type == DataType::kI32);
      return DequantizeFrom<int32_t>(request, quantization());
  }
}

std::vector<OpImporter> QuantizeImporters() {
  return {{"QuantizeLinear", BuildQuantize},
          {"DequantizeLinear", BuildDequantize},
          {"com.microsoft.QuantizeLinear", BuildQuantize},
          {"com.microsoft.DequantizeLinear", BuildDequantize}};
}

std::vector<SavedOp> QuantizeOps() {
  return {Saved<QuantizeLinearOp>("QuantizeLinear"), Saved<DequantizeLinearOp>("DequantizeLinear")};
}

}  // namespace tilesmith
