// QuantizeLinear and DequantizeLinear: from reals to the integers that stand for them, and back.
//
//   quantise:    out = saturate(round(in / scale) + zero_point)      f32 to u8, i8, u16, i16
//   dequantise:  out = (in - zero_point) * scale                     from those or i32 to f32
//
// One scale and zero point for the tensor, or one for each index or block along an axis. Constant ones are a
// Quantization, and such ops run in any layout with one scale or with one for each channel; others are
// inputs 1 and 2, computed by the reference, as blocks are. Numbers narrower than a byte are quantised to as
// bytes with bounds of their own; dequantised are also constants with exponents (base/onnx_type.h).
#pragma once

#include "ops/base/op_registry.h"
#include "ops/base/quantization.h"

namespace tilesmith {

// What the two share: a Quantization that is known, or whose scales are empty and come as inputs.
class LinearQuantizationOp : public Op {
 public:
  const Quantization& quantization() const { return quantization_; }
  bool is_constant() const { return !quantization_.scales.empty(); }

  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  double Flops(std::span<const Shape> inputs) const override;
  bool RunsIn(const Layout& layout, std::span<const Shape> inputs) const override;
  bool AnyTypeInAnyLayout() const override { return true; }
  bool KernelTakes(std::span<const DataType> inputs) const override;
  bool HasFastKernel() const override { return true; }
  std::optional<RowWindows> RowsReadOf(size_t slot, std::span<const Shape> inputs,
                                       const Shape& output) const override {
    return SameRows(slot, inputs, output);
  }
  auto Parameters() const { return std::tie(quantization_); }

 protected:
  explicit LinearQuantizationOp(Quantization quantization) : quantization_(std::move(quantization)) {}
  // The known one, or what these inputs say.
  Quantization Resolved(std::span<const Tensor* const> inputs) const;

 private:
  Quantization quantization_;
};

class QuantizeLinearOp : public LinearQuantizationOp {
 public:
  explicit QuantizeLinearOp(Quantization quantization) : LinearQuantizationOp(std::move(quantization)) {}
  std::string_view Type() const override { return "QuantizeLinear"; }
  DataType OutputType(std::span<const DataType> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
};

class DequantizeLinearOp : public LinearQuantizationOp {
 public:
  explicit DequantizeLinearOp(Quantization quantization) : LinearQuantizationOp(std::move(quantization)) {}
  std::string_view Type() const override { return "DequantizeLinear"; }
  DataType OutputType(std::span<const DataType> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
};

// QuantizeLinear, DequantizeLinear, of the default domain and of com.microsoft.
std::vector<OpImporter> QuantizeImporters();

// Operators on quantised tensors in terms of the same ones on reals: their inputs are dequantised, their
// results quantised, for the passes to bring together again. QLinearConv, QLinearMatMul,
// DynamicQuantizeLinear, and of com.microsoft QLinearAdd, QLinearMul, QLinearConcat, QLinearSigmoid,
// QLinearLeakyRelu, QLinearSoftmax, QLinearAveragePool, QLinearGlobalAveragePool, QGemm,
// MatMulIntegerToFloat, DynamicQuantizeMatMul (qlinear.cc).
std::vector<OpImporter> QLinearImporters();

}  // namespace tilesmith
