// Batches of matrices of floats with any strides, as the kernels of products walk over them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layouts/base/isa_dispatch.h"
#include "layouts/base/kernel.h"
#include "layouts/tensor.h"
#include "layouts/transform_moves.h"
#include "ops/dense/matmul_loops.h"

namespace tilesmith {

// Reshapes and transposes that an op reads or writes through instead of moving anything.

// A plain tensor as an op sees it: reshaped to `view` (empty: its own shape), then transposed, axis a of what
// is seen being axis perm[a] of the view (empty: in order). A tensor of several images keeps them along axis
// 0 of the view, since images may lie apart.
struct Arrangement {
  Shape view = {};
  std::vector<int64_t> perm = {};

  bool operator==(const Arrangement&) const = default;
  // What is seen of a tensor of this shape. Throws Error(kBadModel) when it does not fit.
  Shape Seen(const Shape& tensor) const;
  // "2x3x4@0,2,1"; "" for a tensor as it is.
  std::string ToString() const;
};

// The arrangement under which an op that sees its result as `seen` writes a tensor of shape `tensor` (empty:
// that of the view): axis a of what it sees is axis perm[a] of the view. Throws Error(kBadModel) when they do
// not fit.
struct Written {
  Shape tensor;
  Arrangement arrangement;
};
Written WrittenAs(const Shape& seen, const std::vector<int64_t>& perm, const Shape& tensor);

// Floats between neighbours along each axis that is seen. That of axis `image` is the batch stride, which is
// known only when the op runs; -1: of none.
struct SeenStrides {
  std::vector<int64_t> strides;
  int image = -1;

  int64_t At(size_t axis, int64_t batch_stride) const {
    return static_cast<int>(axis) == image ? batch_stride : strides[axis];
  }
};
// Precondition: arrangement.Seen(tensor) does not throw.
SeenStrides StridesOf(const Arrangement& arrangement, const Shape& tensor);

// The sizes in front of a matrix's two. Precondition: rank >= 2.
inline Shape BatchOf(const Shape& seen) { return {seen.begin(), seen.end() - 2}; }

// What is seen of a tensor, copied into a plain one, and the other way round. Slow.
Tensor Arranged(const Arrangement& arrangement, const Tensor& tensor);
Tensor ArrangedBack(const Written& written, const Tensor& seen);

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
