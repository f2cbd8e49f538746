// Reshapes and transposes that an op reads or writes through instead of moving anything.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layouts/tensor.h"

namespace tilesmith {

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

}  // namespace tilesmith
