#include "ops/quantize/quantize.h"

#include <fmt/format.h>

#include <algorithm>

#include "layouts/base/error.h"
#include "ops/base/import_util.h"
#include "ops/base/node_writer.h"
#include "ops/base/onnx_type.h"
#include "ops/quantize/quantize_kernel.h"

namespace tilesmith {
namespace {

bool IsStored(DataType type) {
  return type == DataType::kU8 || type == DataType::kI8 || type == DataType::kU16 || type == DataType::kI16;
}

int64_t AxisOf(const NodeSpec& spec) {
  if (spec.Int("block_size", 0) != 0) Refuse(spec, "blocked quantization is not supported");
  const int64_t rank = std::ssize(spec.inputs[0].shape);
  const int64_t axis = spec.Int("axis", 1);
  // The default is no axis of a vector, which then has one scale.
  if (!spec.Has("axis") && axis >= rank) return 0;
  return ElementCount(spec.inputs[1].shape) == 1 ? 0 : NormalAxis(spec, axis, static_cast<size_t>(rank));
}

// The node's Quantization, without scales where they are known in a run only.
Quantization ImportQuantization(const NodeSpec& spec, DataType type) {
  const int64_t axis = AxisOf(spec);
  if (spec.inputs[1].shape.size() > 1) Refuse(spec, "blocked quantization is not supported");
  if (!IsKnown(spec, 1) || !IsKnown(spec, 2)) return {.type = type, .axis = axis};
  const Quantization quantization =
      QuantizationOf(spec.Constant(1), spec.HasInput(2) ? &spec.Constant(2) : nullptr, type, axis);
  CheckFits(quantization, spec.inputs[0].shape);
  return quantization;
}

template <typename LinearOp>
BuiltOp BuildLinear(const NodeSpec& spec, DataType type) {
  Quantization quantization = ImportQuantization(spec, type);
  const int inputs = !quantization.scales.empty() ? 1 : spec.HasInput(2) ? 3 : 2;
  return BuiltWithInputs(std::make_shared<LinearOp>(std::move(quantization)), inputs);
}

DataType StoredType(const NodeSpec& spec) {
  const int64_t wanted = spec.Int("output_dtype", 0);
  if (wanted == 0) return spec.HasInput(2) ? spec.inputs[2].type : DataType::kU8;
  const std::optional<DataType> type = TypeOfOnnx(wanted);
  if (!type || !IsStored(*type)) Refuse(spec, fmt::format("output_dtype {} is not supported", wanted));
  return *type;
}

BuiltOp BuildQuantize(const NodeSpec& spec) {
  NeedInputs(spec, 2, 3);
  const DataType type = StoredType(spec);
  if (!IsStored(type))
    Refuse(spec, fmt::format("numbers of type {} are not quantized to", DataTypeName(type)));
  if (spec.inputs[0].type == DataType::kF32) return BuildLinear<QuantizeLinearOp>(spec, type);
  if (spec.inputs[0].type != DataType::kI32) Refuse(spec, "integers other than i32 are not supported");
  NodeWriter writer(spec);
  const int64_t floats = OnnxTypeNumber(DataType::kF32);
  std::vector<std::string> inputs = {writer.Add("Cast", {writer.In(0)}, {{"to", floats}}), writer.In(1)};
  if (spec.HasInput(2)) inputs.push_back(writer.In(2));
  writer.Add("QuantizeLinear", std::move(inputs), spec.attributes, writer.Out(0));
  return writer.Take();
}

BuiltOp BuildDequantize(const NodeSpec& spec) {
  NeedInputs(spec, 2, 3);
  const DataType type = spec.inputs[0].type;
  if (!IsStored(type) && type != DataType::kI32) {
    Refuse(spec, fmt::format("numbers of type {} are not dequantized", DataTypeName(type)));
  }
  return BuildLinear<DequantizeLinearOp>(spec, type);
}

}  // namespace

std::string LinearQuantizationOp::Signature() const {
  return fmt::format("{}{}", Type(),
                     is_constant() ? Describe(quantization_)
                                   : fmt::format(" {} along {} by inputs", DataTypeName(quantization_.type),
                                                 quantization_.axis));
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
  const bool fits = quantization_.per_tensor() || (is_constant() && quantization_.axis == 1);
  return fits && inputs[0].size() <= 4;
}

bool LinearQuantizationOp::KernelTakes(std::span<const DataType>) const { return is_constant(); }

Quantization LinearQuantizationOp::Resolved(std::span<const Tensor* const> inputs) const {
  if (is_constant()) return quantization_;
  const Quantization resolved = QuantizationOf(*inputs[1], inputs.size() > 2 ? inputs[2] : nullptr,
                                               quantization_.type, quantization_.axis);
  CheckFits(resolved, inputs[0]->shape());
  return resolved;
}

DataType QuantizeLinearOp::OutputType(std::span<const DataType> inputs) const {
  if (inputs[0] != DataType::kF32) throw Error(ErrorCode::kBadModel, "only floats are quantized");
  return quantization().type;
}

Tensor QuantizeLinearOp::Reference(std::span<const Tensor* const> inputs) const {
  return Quantized(*inputs[0], Resolved(inputs));
}

std::unique_ptr<Kernel> QuantizeLinearOp::MakeKernel(const KernelRequest& request) const {
  return MakeQuantizeKernel(request, quantization());
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
  return MakeDequantizeKernel(request, quantization());
}

std::vector<OpImporter> QuantizeImporters() {
  return {{"QuantizeLinear", BuildQuantize},
          {"DequantizeLinear", BuildDequantize},
          {"com.microsoft.QuantizeLinear", BuildQuantize},
          {"com.microsoft.DequantizeLinear", BuildDequantize}};
}

}  // namespace tilesmith
