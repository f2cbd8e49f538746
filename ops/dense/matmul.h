// Products of two matrices, both computed by the network, or of batches of them.
//
//   out[..., i, j] = act( scale * sum_k a[..., i, k] * b[..., k, j] + bias[j] )
//
// numpy.matmul: leading sizes broadcast; a vector on the left is a row, one on the right a column, and the
// axis that this adds is dropped from the result. Both sides and the result may be arranged (strided.h).
// Plain layout.
#pragma once

#include <memory>
#include <string>

#include "ops/base/activation.h"
#include "ops/base/op_registry.h"
#include "ops/dense/attention.h"
#include "ops/dense/matmul_loops.h"
#include "ops/dense/strided.h"

namespace tilesmith {

// How a product is computed; it does not matter for what. Its sums are made a panel at a time, which is a
// task: panel_rows rows, of equal panels, by panel_columns columns.
struct MatMulSchedule {
  int tile_rows = 0, tile_vectors = kDefaultTileVectors;  // register tile, as in PanelProduct
  int64_t panel_rows = 0;     // 0: kPanelRows, twice as many where the right side has to be transposed
  int64_t panel_columns = 0;  // whole vectors, <= kMaxPanelColumns; 0: DefaultPanelColumns
  int64_t panel_terms = kPanelTerms;  // added up at a time
  bool pack_left = false;
  Packing pack_right = Packing::kWhereItPays;
  bool rows_inner = false;  // neighbouring tasks share columns of the right side, else rows of the left
};

struct MatMulParams {
  Arrangement a = {}, b = {};
  std::vector<int64_t> out_perm = {};  // of the result, as in WrittenAs
  Shape out_shape = {};
  float scale = 1;
  std::shared_ptr<const Tensor> bias = nullptr;  // N floats, or null
  Activation activation = {};
  MatMulSchedule schedule = {};  // no part of the signature
};

// The columns of a panel without tuning: kPanelColumns, but more where a panel's rows of the left side, of k
// terms, do not stay in the second-level cache and are read again for every panel, as long as there are some
// panels for each core.
int64_t DefaultPanelColumns(int64_t m, int64_t n, int64_t k, const Target& cpu);

class MatMulOp : public Op {
 public:
  explicit MatMulOp(MatMulParams params = {}) : params_(std::move(params)) {}
  const MatMulParams& params() const { return params_; }

  std::string_view Type() const override { return "MatMul"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override;
  double Flops(std::span<const Shape> inputs) const override;
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool HasFastKernel() const override { return true; }
  auto Parameters() const { return std::tie(params_); }

 private:
  MatMulParams params_;
};

// A product's sizes, vectors made matrices.
struct MatMulShapes {
  Shape a, b;   // as seen, rank >= 2
  Shape batch;  // broadcast
  int64_t m = 0, n = 0, k = 0;
  Shape out;  // as seen: a vector's axis dropped
};
// Throws Error(kBadModel) when they do not fit.
MatMulShapes ShapesOf(const MatMulParams& params, std::span<const Shape> inputs);

// MatMulOp's formula, by the schedule of its parameters.
std::unique_ptr<Kernel> MakeMatMulKernel(const KernelRequest& request, const MatMulParams& params);
// AttentionOp's formula. Tasks are blocks of rows of one head; their scores are made for a block of keys at a
// time and never leave the cache, by the online softmax of Milakov and Gimelshein (2018).
std::unique_ptr<Kernel> MakeAttentionKernel(const KernelRequest& request, const AttentionParams& params);

}  // namespace tilesmith
