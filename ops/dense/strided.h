// Batches of matrices of floats with any strides, as the kernels of products walk over them.
#pragma once

#include <cstdint>
#include <vector>

#include "layouts/base/isa_dispatch.h"
#include "layouts/base/kernel.h"
#include "layouts/transform_moves.h"
#include "ops/dense/arrangement.h"
#include "ops/dense/matmul_loops.h"

namespace tilesmith {

// Where the floats of a tensor begin, and how many there are from one image to the next.
template <typename Float>
struct Images {
  Float* data = nullptr;
  int64_t stride = 0;
};
inline Images<const float> FloatsOf(const InputView& view) {
  return {view.image<float>(0), view.batch_stride / int64_t{sizeof(float)}};
}
inline Images<float> FloatsOf(const OutputView& view) {
  return {view.image<float>(0), view.batch_stride / int64_t{sizeof(float)}};
}

// The matrices of one operand, by the index of a batch that it is broadcast to.
class StridedBatch {
 public:
  // `seen` is what is seen of the tensor, [..., rows, columns], and `batch` the sizes that its leading ones
  // are broadcast to. A vector is seen as a matrix whose other axis, of size 1, is in `strides` like any
  // other.
  StridedBatch(const Shape& seen, SeenStrides strides, const Shape& batch);

  int64_t row(int64_t batch_stride) const { return strides_.At(rank_ - 2, batch_stride); }
  int64_t column(int64_t batch_stride) const { return strides_.At(rank_ - 1, batch_stride); }
  // Where matrix `index` begins.
  int64_t Offset(int64_t index, int64_t batch_stride) const;

 private:
  size_t rank_;
  SeenStrides strides_;
  Shape seen_, batch_;
};

// The loops for one instruction set.
struct ProductLoops {
  explicit ProductLoops(const Target& cpu);
  int vector_floats;
  void (*add)(const PanelProduct&);
  void (*store)(const PanelResult&);
  float (*add_scores)(const ScoreBlock&, SoftmaxState&);
  void (*scale_row)(float*, int64_t, float);
  void (*copy_runs)(const RunMove<float>&);
  void (*interleave)(const PlaneMove<float>&);
};

// A block of one side of a product: data[term * i + other * j] for i < terms, j < others; the others are
// columns of the right side, or rows of the left one.
struct ProductBlock {
  const float* data = nullptr;
  int64_t term = 0, other = 0;  // strides
  int64_t terms = 0, others = 0;
};
// Where the copy of a block goes: term * i + j, zeros for j in [others, padded).
struct PackedBlock {
  float* data = nullptr;
  int64_t term = 0;
  int64_t padded = 0;
};
void PackBlock(const ProductLoops& loops, const ProductBlock& block, const PackedBlock& packed);
// Sets b and columns of `product`, which has its rows and register tile: the block where it is, or packed,
// tile by tile, in block.terms floats for each column, rounded up to whole vectors.
void SetRight(const ProductLoops& loops, const ProductBlock& block, float* packed, PanelProduct& product,
              Packing packing = Packing::kWhereItPays);

}  // namespace tilesmith
