// Leaky relu with one slope per channel:
//
//   out[n, c, ...] = in >= 0 ? in : slope[c] * in            any rank >= 2, any layout for rank <= 4
#pragma once

#include <vector>

#include "ops/base/op_registry.h"

namespace tilesmith {

class PReluOp : public Op {
 public:
  explicit PReluOp(std::vector<float> slopes) : slopes_(std::move(slopes)) {}  // one per channel
  const std::vector<float>& slopes() const { return slopes_; }

  std::string_view Type() const override { return "PRelu"; }
  std::string Signature() const override { return "PRelu"; }
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  bool RunsIn(const Layout& layout, std::span<const Shape> inputs) const override;
  bool AnyTypeInAnyLayout() const override { return true; }
  bool KernelTakes(std::span<const DataType> inputs) const override { return AreFloatsOrBf16(inputs); }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool HasFastKernel() const override { return true; }
  bool InPlaceOk(int) const override { return true; }

 private:
  std::vector<float> slopes_;
};

// PRelu: this with constant slopes, scalar or per channel, otherwise a BinaryOp.
std::vector<OpImporter> PReluImporters();

}  // namespace tilesmith
