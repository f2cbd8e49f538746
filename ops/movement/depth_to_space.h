// Channels to pixels, the shuffle that turns the output of a conv into that of a transposed one:
//
//   out[n, o, y, x] = in[n, channel(o, i, j), (y + top) / bh, (x + left) / bw]
//       with i = (y + top) % bh, j = (x + left) % bw
//
// Any layout. Moves whole vectors where a block divides the output's channels and they are innermost (DCR).
#pragma once

#include "ops/base/op.h"

namespace tilesmith {

enum class DepthOrder {
  kDcr,  // ONNX's "DCR": channel(o, i, j) = (i * bw + j) * oc + o, for oc output channels
  kCrd,  // "CRD", a pixel shuffle: (o * bh + i) * bw + j
};

struct DepthToSpaceParams {
  int64_t bh = 1, bw = 1;
  DepthOrder order = DepthOrder::kDcr;
  int64_t top = 0, left = 0, bottom = 0, right = 0;  // output rows and columns that are left out
};

class DepthToSpaceOp : public Op {
 public:
  explicit DepthToSpaceOp(const DepthToSpaceParams& params) : params_(params) {}
  const DepthToSpaceParams& params() const { return params_; }
  // The formula's channel(o, i, j), for oc output channels.
  int64_t Channel(int64_t oc, int64_t o, int64_t i, int64_t j) const;

  std::string_view Type() const override { return "DepthToSpace"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  bool RunsIn(const Layout&, std::span<const Shape>) const override { return true; }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool HasFastKernel() const override { return true; }
  std::optional<RowWindows> RowsReadOf(size_t, std::span<const Shape>, const Shape&) const override {
    if (params_.top != 0) return std::nullopt;
    return RowWindows{{.rows_each = params_.bh}};
  }
  auto Parameters() const { return std::tie(params_); }

 private:
  DepthToSpaceParams params_;
};

}  // namespace tilesmith
