// Max pooling of bytes, in any layout: PoolOp's formula (ops/pool/pool.h), whose scale and zero point do not
// matter. A window wholly outside the input gives the type's lowest number. MaxPool of bytes imports as one,
// and a pass makes it of MaxPool between DequantizeLinear and QuantizeLinear.
#pragma once

#include "ops/base/quantization.h"
#include "ops/pool/pool.h"

namespace tilesmith {

class QuantizedMaxPoolOp : public Op {
 public:
  // Precondition: window.kind is kMax.
  explicit QuantizedMaxPoolOp(const PoolWindow& window);
  // Of a PoolOp.
  static OpPtr Of(const Op& op, const ByteForm& form);
  const PoolWindow& window() const { return pool_.window(); }

  std::string_view Type() const override { return "QuantizedMaxPool"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override { return pool_.InferShape(inputs); }
  DataType OutputType(std::span<const DataType> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  double Flops(std::span<const Shape> inputs) const override { return pool_.Flops(inputs); }
  bool RunsIn(const Layout&, std::span<const Shape>) const override { return true; }
  bool AnyTypeInAnyLayout() const override { return true; }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool KernelTakes(std::span<const DataType> inputs) const override;
  bool HasFastKernel() const override { return true; }
  std::optional<RowWindows> RowsReadOf(size_t slot, std::span<const Shape> inputs,
                                       const Shape& output) const override {
    return pool_.RowsReadOf(slot, inputs, output);
  }
  auto Parameters() const { return std::tie(pool_.window()); }

 private:
  const PoolOp pool_;
};

// Average pooling of bytes, in any layout: PoolOp's windows (ops/pool/pool.h) between DequantizeLinear and
// QuantizeLinear. There is no importer, a pass makes it of those.
//
//   y = clamp(round(float(sum of x - zero_x) * scale_x / taps / scale_y) + zero_y, low, high)
//
// The sum is exact, the product and each quotient are rounded to float. Taps are counted as PoolOp does.

struct QuantizedAveragePoolParams {
  PoolWindow window;           // kAverage, of at most 2^23 taps
  Quantization input, output;  // u8 or i8, of one type, per tensor
  StoredRange limits;          // of y, within the type's range
};

class QuantizedAveragePoolOp : public Op {
 public:
  // Preconditions: as said there.
  explicit QuantizedAveragePoolOp(QuantizedAveragePoolParams params);
  // Of a PoolOp, and of a GlobalPoolOp.
  static OpPtr Of(const Op& op, const ByteForm& form);
  static constexpr int64_t kMaxTaps = int64_t{1} << 23;

  std::string_view Type() const override { return "QuantizedAveragePool"; }
  std::string Signature() const override;  // without scales, zero points and limits
  Shape InferShape(std::span<const Shape> inputs) const override { return pool_.InferShape(inputs); }
  DataType OutputType(std::span<const DataType> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  double Flops(std::span<const Shape> inputs) const override { return pool_.Flops(inputs); }
  bool RunsIn(const Layout&, std::span<const Shape>) const override { return true; }
  bool AnyTypeInAnyLayout() const override { return true; }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool KernelTakes(std::span<const DataType> inputs) const override {
    return inputs[0] == params_.input.type;
  }
  bool HasFastKernel() const override { return true; }
  std::optional<RowWindows> RowsReadOf(size_t slot, std::span<const Shape> inputs,
                                       const Shape& output) const override {
    return pool_.RowsReadOf(slot, inputs, output);
  }
  auto Parameters() const { return std::tie(params_); }

 private:
  const QuantizedAveragePoolParams params_;
  const PoolOp pool_;
};

}  // namespace tilesmith
