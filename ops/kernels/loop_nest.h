// Loops over the elements of a tensor with several operands that lie differently: one broadcasts, another is
// transposed, a third is a slice of something larger.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "layouts/layout.h"

namespace tilesmith {

// A value on the stack: made anew for each call of a kernel, since only that knows how far images lie apart.
template <int kOperands>
class OperandLoops {
 public:
  using Strides = std::array<int64_t, kOperands>;

  // A part of the elements: `rows` x `columns` of them, and where each operand's first one lies. The strides
  // are those of the operands from row to row and from column to column.
  struct Part {
    Strides offset;
    int64_t rows, columns;
    Strides row, column;
  };

  // The next dimension, inside of those added before, and what a step along it is for each operand, in
  // elements. Dimensions that every operand walks through as one become one. Precondition: at most kMaxRank +
  // 1 calls.
  void Add(int64_t size, const Strides& strides) {
    if (size == 1) return;
    if (rank_ > apart_ && Continues(dims_[rank_ - 1], size, strides)) {
      dims_[rank_ - 1] = {dims_[rank_ - 1].size * size, strides};
    } else {
      dims_[rank_++] = {size, strides};
    }
  }

  // Dimensions added from now on do not become one with those before, however these lie.
  void KeepApart() { apart_ = rank_; }

  // Calls body(part) for parts that make up elements [begin, end), counted as the dimensions are nested;
  // parts lie in that order, and so do the elements in them.
  template <typename Body>
  void ForEach(int64_t begin, int64_t end, const Body& body) const {
    if (begin >= end) return;
    const Dim inner = rank_ > 0 ? dims_[rank_ - 1] : Dim{1, {}};
    const Dim outer = rank_ > 1 ? dims_[rank_ - 2] : Dim{1, {}};
    int64_t column = begin % inner.size, row = begin / inner.size % outer.size;
    int64_t rest = begin / inner.size / outer.size;
    std::array<int64_t, kMaxDims> index{};
    Strides base{};
    for (int d = rank_ - 2; d-- > 0; rest /= dims_[d].size) {
      index[d] = rest % dims_[d].size;
      for (int k = 0; k < kOperands; ++k) base[k] += index[d] * dims_[d].strides[k];
    }
    while (true) {
      Part part{base, 1, std::min(inner.size - column, end - begin), outer.strides, inner.strides};
      if (column == 0 && end - begin >= inner.size) {
        part.rows = std::min(outer.size - row, (end - begin) / inner.size);
      }
      for (int k = 0; k < kOperands; ++k)
        part.offset[k] += row * outer.strides[k] + column * inner.strides[k];
      body(part);
      begin += part.rows * part.columns;
      if (begin == end) return;
      column = 0;
      row += part.rows;
      if (row < outer.size) continue;
      row = 0;
      for (int d = rank_ - 2; d-- > 0;) {
        for (int k = 0; k < kOperands; ++k) base[k] += dims_[d].strides[k];
        if (++index[d] < dims_[d].size) break;
        for (int k = 0; k < kOperands; ++k) base[k] -= dims_[d].size * dims_[d].strides[k];
        index[d] = 0;
      }
    }
  }

 private:
  static constexpr int kMaxDims = kMaxRank + 1;
  struct Dim {
    int64_t size;
    Strides strides;
  };

  static bool Continues(const Dim& outer, int64_t size, const Strides& strides) {
    for (int k = 0; k < kOperands; ++k) {
      if (outer.strides[k] != size * strides[k]) return false;
    }
    return true;
  }

  std::array<Dim, kMaxDims> dims_;
  int rank_ = 0, apart_ = 0;
};

// A tensor's dimensions as they lie in memory, outermost first: its own in plain layout, otherwise {N,
// blocks, H, W, lanes}. Strides in elements.
struct MemoryDims {
  int rank = 0;
  std::array<int64_t, kMaxRank + 1> size;
  std::array<int64_t, kMaxRank + 1> stride;
};

// `batch_stride` as views have it: in bytes. Precondition: rank <= 4 or plain layout.
inline MemoryDims MemoryDimsOf(const Shape& shape, const Layout& layout, int64_t batch_stride) {
  MemoryDims dims;
  if (layout.is_nchw()) {
    for (const int64_t size : shape) dims.size[dims.rank++] = size;
  } else {
    const Dims4 d = ToDims4(shape);
    dims.rank = 5;
    dims.size = {d.n, layout.Blocks(d.c), d.h, d.w, layout.BlockFor(d.c)};
  }
  int64_t stride = 1;
  for (int i = dims.rank; i-- > 0; stride *= dims.size[i]) dims.stride[i] = stride;
  if (dims.rank > 0) dims.stride[0] = batch_stride / ElementBytes(layout.type());
  return dims;
}

// The strides with which an operand that broadcasts is read along the dimensions of the result, which are
// those of `result_shape`: 0 where it repeats. Precondition: it broadcasts, in a layout other than the plain
// one with the same rank and either one channel or as many as the result.
inline std::array<int64_t, kMaxRank + 1> BroadcastStrides(const Shape& shape, const Shape& result_shape,
                                                          const Layout& layout, int64_t batch_stride) {
  const MemoryDims dims = MemoryDimsOf(shape, layout, batch_stride);
  std::array<int64_t, kMaxRank + 1> strides{};
  if (!layout.is_nchw()) {
    const Dims4 from = ToDims4(shape), to = ToDims4(result_shape);
    const bool repeats[] = {from.n != to.n, from.c != to.c, from.h != to.h, from.w != to.w, from.c != to.c};
    for (int i = 0; i < 5; ++i) strides[i] = repeats[i] ? 0 : dims.stride[i];
    return strides;
  }
  const size_t lead = result_shape.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    strides[lead + i] = shape[i] == result_shape[lead + i] ? dims.stride[i] : 0;
  }
  return strides;
}

}  // namespace tilesmith
