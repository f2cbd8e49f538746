// Products of quantised tensors, exact in 32 bits.
//
//   MatMulInteger:  y[m, n] = sum_k (a[m, k] - za[m]) * (b[k, n] - zb[n])           batches broadcast
//   ConvInteger:    y[o, p] = sum_t (x[c, p + t] - zx) * (w[o, c, t] - zw[o])       padding counts as 0
//
// a, b, x and w are u8 or i8, the result is i32. Zero points are inputs 2 and 3, one for all or one for each
// row (za), column (zb) or output channel (zw). A factor is at most 255, so that sums of kMaxTerms products
// cannot overflow; longer ones are refused.
#pragma once

#include "ops/base/import_util.h"
#include "ops/base/op_registry.h"

namespace tilesmith {

class IntegerProductOp : public Op {
 public:
  static constexpr int64_t kMaxTerms = INT32_MAX / (255 * 255);

  DataType OutputType(std::span<const DataType> inputs) const override;
  bool KernelTakes(std::span<const DataType>) const override { return true; }
  bool HasFastKernel() const override { return true; }
};

class MatMulIntegerOp : public IntegerProductOp {
 public:
  std::string_view Type() const override { return "MatMulInteger"; }
  std::string Signature() const override { return "MatMulInteger"; }
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  double Flops(std::span<const Shape> inputs) const override;
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  auto Parameters() const { return std::tie(); }
};

// ConvInteger, of images {N, C, H, W}.
class ConvIntegerOp : public IntegerProductOp {
 public:
  ConvIntegerOp(const Window& window, int64_t groups) : window_(window), groups_(groups) {}
  std::string_view Type() const override { return "ConvInteger"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  double Flops(std::span<const Shape> inputs) const override;
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  auto Parameters() const { return std::tie(window_, groups_); }

 private:
  const Window window_;
  const int64_t groups_;
};

// MatMulInteger, ConvInteger.
std::vector<OpImporter> IntegerProductImporters();

}  // namespace tilesmith
