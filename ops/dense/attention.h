// Attention: every row of the result is a mean of rows of V, weighted by how well a row of Q fits the rows of
// K.
//
//   out[..., t, :] = sum_s softmax_s( scale * dot(q[..., t, :], k[..., s, :]) + mask[..., t, s] ) * v[..., s,
//   :]
//
// Inputs: Q, K, V, and the mask where there is one. Leading sizes broadcast, those of the mask as well; where
// causal, row t takes s <= t only. All may be arranged (strided.h), which is how heads that lie side by
// side are told apart; not so that a mask's last axis is another. Plain layout. The scores are never a
// tensor. Source: Vaswani et al., "Attention is all you need" (2017), section 3.2.1.
#pragma once

#include <memory>
#include <string>

#include "ops/base/op.h"
#include "ops/dense/strided.h"

namespace tilesmith {

struct AttentionParams {
  Arrangement q = {}, k = {}, v = {}, mask = {};
  std::vector<int64_t> out_perm = {};  // of the result, as in WrittenAs
  Shape out_shape = {};
  float scale = 1;
  bool masked = false;  // there is an input 3, seen with rank >= 2
  bool causal = false;
};

class AttentionOp : public Op {
 public:
  explicit AttentionOp(AttentionParams params) : params_(std::move(params)) {}
  const AttentionParams& params() const { return params_; }

  std::string_view Type() const override { return "Attention"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override;
  double Flops(std::span<const Shape> inputs) const override;
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool HasFastKernel() const override { return true; }
  auto Parameters() const { return std::tie(params_); }

 private:
  AttentionParams params_;
};

struct AttentionShapes {
  Shape q, k, v;  // as seen: [..., rows, width], [..., keys, width], [..., keys, outputs]
  Shape mask;     // [..., rows, keys], or empty
  Shape batch;    // broadcast
  int64_t rows = 0, keys = 0, width = 0, outputs = 0;
  Shape out;  // as seen: [batch..., rows, outputs]
};
// Throws Error(kBadModel) when they do not fit.
AttentionShapes ShapesOf(const AttentionParams& params, std::span<const Shape> inputs);

}  // namespace tilesmith
