#include "ops/dense/strided.h"

#include <utility>

namespace tilesmith {

StridedBatch::StridedBatch(const Shape& seen, SeenStrides strides, const Shape& batch)
    : rank_(seen.size()), strides_(std::move(strides)), seen_(seen), batch_(batch) {}

int64_t StridedBatch::Offset(int64_t index, int64_t batch_stride) const {
  int64_t offset = 0;
  const size_t leading = rank_ - 2;
  for (size_t axis = batch_.size(); axis-- > 0; index /= batch_[axis]) {
    const size_t missing = batch_.size() - leading;
    if (axis < missing || seen_[axis - missing] == 1) continue;
    offset += index % batch_[axis] * strides_.At(axis - missing, batch_stride);
  }
  return offset;
}

ProductLoops::ProductLoops(Isa isa)
    : add(TILESMITH_DISPATCH(isa, AddPanelProduct)),
      store(TILESMITH_DISPATCH(isa, StorePanel)),
      add_scores(TILESMITH_DISPATCH(isa, AddScores)),
      scale_row(TILESMITH_DISPATCH(isa, ScaleRow)),
      copy_runs(TILESMITH_DISPATCH(isa, CopyRuns<float>)),
      interleave(TILESMITH_DISPATCH(isa, Interleave<float>)) {}

void SetRight(const ProductLoops& loops, const RightBlock& block, float* packed, PanelProduct& product) {
  constexpr int64_t kFewRows = 12;  // that do not repay packing
  constexpr int64_t kFarApart =
      512;  // rows so far apart that they evict each other from the first-level cache
  const bool whole = block.column == 1 && block.columns == kPanelColumns;
  if (whole && (block.term < kFarApart || product.rows <= kFewRows)) {
    product.b = block.data, product.b_term = block.term;
    return;
  }
  if (block.column == 1) {
    loops.copy_runs({.in = block.data,
                     .out = packed,
                     .in_pixel_stride = block.term,
                     .out_pixel_stride = kPanelColumns,
                     .pixels = block.terms,
                     .runs = 1,
                     .length = block.columns,
                     .padded = kPanelColumns});
  } else if (block.term == 1) {
    loops.interleave({.in = block.data,
                      .out = packed,
                      .plane_stride = block.column,
                      .pixel_stride = kPanelColumns,
                      .pixels = block.terms,
                      .channels = block.columns,
                      .padded = kPanelColumns});
  } else {
    for (int64_t k = 0; k < block.terms; ++k) {
      for (int64_t c = 0; c < kPanelColumns; ++c) {
        packed[k * kPanelColumns + c] =
            c < block.columns ? block.data[k * block.term + c * block.column] : 0.0f;
      }
    }
  }
  product.b = packed, product.b_term = kPanelColumns;
}

}  // namespace tilesmith
