// Functions of one float that convs cannot fuse (kinds.h has their formulas): any shape, any layout for rank
// <= 4. A NaN stays one; Gelu and Mish of minus infinity are their limit, 0.
#pragma once

#include "ops/base/op.h"
#include "ops/elementwise/kinds.h"

namespace tilesmith {

// The value, in double: what kernels are compared with.
double Apply(const Function& function, double x);
// Whether FunctionRun (elementwise_loops.h) has it; the others are computed one by one, as Apply does.
bool HasVectorFunction(FunctionKind kind);

class FunctionOp : public Op {
 public:
  explicit FunctionOp(const Function& function) : function_(function) {}
  const Function& function() const { return function_; }

  std::string_view Type() const override;
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override { return inputs[0]; }
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override;
  bool RunsIn(const Layout& layout, std::span<const Shape> inputs) const override {
    return layout.is_nchw() || inputs[0].size() <= 4;
  }
  bool AnyTypeInAnyLayout() const override { return true; }
  bool KernelTakes(std::span<const DataType> inputs) const override { return AreFloatsOrBf16(inputs); }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool HasFastKernel() const override { return true; }
  bool InPlaceOk(int) const override { return true; }
  auto Parameters() const { return std::tie(function_); }

 private:
  Function function_;
};

}  // namespace tilesmith
