// Max and average pooling over 2-D windows, in any layout.
//
//   out[n, c, y, x] = max or mean over i < kh, j < kw of in[n, c, y*sh - top + i*dh, x*sw - left + j*dw]
//
// Taps outside the input are skipped; the mean divides by the taps inside it, or, with count_include_pad, by
// those inside the padded input. A window wholly outside gives -infinity or 0.
#pragma once

#include "ops/base/op.h"

namespace tilesmith {

enum class PoolKind { kMax, kAverage };

struct PoolWindow {
  PoolKind kind = PoolKind::kMax;
  int64_t kh = 1, kw = 1, sh = 1, sw = 1;
  int64_t dh = 1, dw = 1;  // distance between taps, 1 is dense (as ONNX counts)
  int64_t top = 0, left = 0, bottom = 0, right = 0;
  bool ceil_mode = false;  // round the output size up; windows that start in the end padding are dropped
  bool count_include_pad = false;
  bool operator==(const PoolWindow&) const = default;
};

// One window along one axis, whatever its size: tap i lies at `start` + i * dilation.
struct WindowTaps {
  int64_t first = 0, last = 0;  // taps [first, last) lie in [0, size); {0, 0} when none does
  int64_t padded = 0;           // taps before size + end_pad
};
WindowTaps TapsOf(int64_t start, int64_t kernel, int64_t dilation, int64_t size, int64_t end_pad);

class PoolOp : public Op {
 public:
  explicit PoolOp(const PoolWindow& window) : window_(window) {}
  const PoolWindow& window() const { return window_; }

  std::string_view Type() const override {
    return window_.kind == PoolKind::kMax ? "MaxPool" : "AveragePool";
  }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override;
  double Flops(std::span<const Shape> inputs) const override;
  bool RunsIn(const Layout&, std::span<const Shape>) const override { return true; }
  bool AnyTypeInAnyLayout() const override { return true; }
  bool KernelTakes(std::span<const DataType> inputs) const override { return AreFloatsOrBf16(inputs); }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool HasFastKernel() const override { return true; }
  std::optional<RowWindows> RowsReadOf(size_t, std::span<const Shape>, const Shape&) const override {
    return RowWindows{{window_.sh, window_.top, (window_.kh - 1) * window_.dh + 1}};
  }
  auto Parameters() const { return std::tie(window_); }

 private:
  PoolWindow window_;
};

// out[n, c] = max or mean of in[n, c, :, :]; the output keeps its two trailing sizes of 1 when keep_dims. Any
// layout.
class GlobalPoolOp : public Op {
 public:
  explicit GlobalPoolOp(PoolKind kind, bool keep_dims = true) : kind_(kind), keep_dims_(keep_dims) {}
  PoolKind kind() const { return kind_; }
  bool keep_dims() const { return keep_dims_; }

  std::string_view Type() const override {
    return kind_ == PoolKind::kMax ? "GlobalMaxPool" : "GlobalAveragePool";
  }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override;
  double Flops(std::span<const Shape> inputs) const override;
  bool RunsIn(const Layout&, std::span<const Shape>) const override { return true; }
  bool AnyTypeInAnyLayout() const override { return true; }
  bool KernelTakes(std::span<const DataType> inputs) const override { return AreFloatsOrBf16(inputs); }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool HasFastKernel() const override { return true; }
  bool DealsByInput(const Layout& layout) const override { return !layout.is_nchw(); }
  auto Parameters() const { return std::tie(kind_, keep_dims_); }

 private:
  PoolKind kind_;
  bool keep_dims_;
};

}  // namespace tilesmith
