// A scale and shift of each channel in front of what quantises: what DequantizeLinear, or nothing, a batch
// normalization, an activation that clamps and QuantizeLinear are together. There is no importer, a pass
// makes it of those.
//
//   y = clamp(round((x - zero_x) * f[c] + t[c]) + zero_y, low, high)
//   f[c] = scale[c] * scale_x / scale_y      t[c] = shift[c] / scale_y, both floats
//
// An x of f32 has a zero_x of 0 and a scale_x of 1, and a NaN becomes `low`. Any rank >= 2; any layout for
// rank <= 4.
#pragma once

#include <optional>
#include <vector>

#include "ops/base/op.h"
#include "ops/base/quantization.h"

namespace tilesmith {

struct QuantizedScaleShiftParams {
  std::vector<float> scale, shift;    // of each channel
  std::optional<Quantization> input;  // the output's type, per tensor; none: f32
  Quantization output;                // u8 or i8, per tensor
  StoredRange limits;                 // of y, within the type's range
};

class QuantizedScaleShiftOp : public Op {
 public:
  // Precondition: HasFiniteTerms(params).
  explicit QuantizedScaleShiftOp(QuantizedScaleShiftParams params);
  // Of a ScaleShiftOp, on reals, too.
  static OpPtr Of(const Op& op, const ByteForm& form);
  // Whether f and t are numbers.
  static bool HasFiniteTerms(const QuantizedScaleShiftParams& params);

  std::string_view Type() const override { return "QuantizedScaleShift"; }
  std::string Signature() const override;  // without scales, zero points and limits
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  double Flops(std::span<const Shape> inputs) const override;
  bool RunsIn(const Layout& layout, std::span<const Shape> inputs) const override;
  bool AnyTypeInAnyLayout() const override { return true; }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool KernelTakes(std::span<const DataType> inputs) const override { return inputs[0] == InputType(); }
  bool HasFastKernel() const override { return true; }
  std::optional<RowWindows> RowsReadOf(size_t slot, std::span<const Shape> inputs,
                                       const Shape& output) const override {
    return SameRows(slot, inputs, output);
  }
  auto Parameters() const { return std::tie(params_); }

 private:
  DataType InputType() const { return params_.input ? params_.input->type : DataType::kF32; }

  const QuantizedScaleShiftParams params_;
  const std::vector<float> factors_, terms_;
};

}  // namespace tilesmith
