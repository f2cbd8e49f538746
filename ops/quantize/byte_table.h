// A function of one quantised number: what DequantizeLinear, an activation, or none, and QuantizeLinear are
// together, as a table of all 256 bytes. There is no importer, a pass makes it of those.
//
//   y = clamp(round(f((x - zero_x) * scale_x) / scale_y) + zero_y, low, high)
//
// Any shape and layout.
#pragma once

#include <array>

#include "ops/base/activation.h"
#include "ops/base/op.h"
#include "ops/base/quantization.h"

namespace tilesmith {

class ByteTableOp : public Op {
 public:
  // Preconditions: u8 or i8, per tensor; `limits` within the output type's range.
  ByteTableOp(const Activation& function, Quantization input, Quantization output, StoredRange limits);
  ByteTableOp(std::string function, DataType input, DataType output, const std::array<uint8_t, 256>& table)
      : function_(std::move(function)), input_(input), output_(output), table_(table) {}

  // Of an ActivationOp, and of what dequantises, where scales or bounds differ.
  static OpPtr Of(const Op& op, const ByteForm& form);

  std::string_view Type() const override { return "ByteTable"; }
  std::string Signature() const override;  // without scales, zero points and limits
  Shape InferShape(std::span<const Shape> inputs) const override { return inputs[0]; }
  DataType OutputType(std::span<const DataType> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  double Flops(std::span<const Shape> inputs) const override { return ElementCount(inputs[0]); }
  bool RunsIn(const Layout& layout, std::span<const Shape> inputs) const override;
  bool AnyTypeInAnyLayout() const override { return true; }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool KernelTakes(std::span<const DataType> inputs) const override { return inputs[0] == input_; }
  bool HasFastKernel() const override { return true; }
  std::optional<RowWindows> RowsReadOf(size_t slot, std::span<const Shape> inputs,
                                       const Shape& output) const override {
    return SameRows(slot, inputs, output);
  }
  auto Parameters() const { return std::tie(function_, input_, output_, table_); }

 private:
  const std::string function_;
  const DataType input_, output_;
  std::array<uint8_t, 256> table_;  // of the bits of x
};

}  // namespace tilesmith
