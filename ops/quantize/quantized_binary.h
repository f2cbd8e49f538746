// Sums and products of quantised tensors: what two DequantizeLinear, Add or Mul, an activation that clamps
// and QuantizeLinear are together. There is no importer, a pass makes it of those.
//
//   y = clamp(round(((a - zero_a) * scale_a op (b - zero_b) * scale_b) / scale_y) + zero_y, low, high)
//
// Both inputs have the output's shape and type; any layout.
#pragma once

#include "ops/base/op.h"
#include "ops/base/quantization.h"
#include "ops/elementwise/kinds.h"

namespace tilesmith {

struct QuantizedBinaryParams {
  BinaryKind kind = BinaryKind::kAdd;  // or kMul
  Quantization a, b, output;           // u8 or i8, of one type, per tensor
  StoredRange limits;                  // of y, within the type's range
};

class QuantizedBinaryOp : public Op {
 public:
  explicit QuantizedBinaryOp(QuantizedBinaryParams params);
  // Of a BinaryOp.
  static OpPtr Of(const Op& op, const ByteForm& form);
  const QuantizedBinaryParams& params() const { return params_; }

  std::string_view Type() const override;  // "QuantizedAdd", "QuantizedMul"
  std::string Signature() const override;  // without scales, zero points and limits
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  double Flops(std::span<const Shape> inputs) const override;
  bool RunsIn(const Layout& layout, std::span<const Shape> inputs) const override;
  bool AnyTypeInAnyLayout() const override { return true; }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool KernelTakes(std::span<const DataType> inputs) const override;
  bool HasFastKernel() const override { return true; }
  std::optional<RowWindows> RowsReadOf(size_t slot, std::span<const Shape> inputs,
                                       const Shape& output) const override {
    return SameRows(slot, inputs, output);
  }
  auto Parameters() const { return std::tie(params_); }

 private:
  const QuantizedBinaryParams params_;
};

}  // namespace tilesmith
