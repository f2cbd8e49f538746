#include "ops/dense/strided.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "layouts/base/error.h"
#include "layouts/base/sizes.h"
#include "ops/base/elements.h"

namespace tilesmith {
namespace {

[[noreturn]] void Fail(const Arrangement& arrangement, const Shape& tensor) {
  throw Error(ErrorCode::kBadModel,
              fmt::format("{} cannot be seen as {}", ShapeToString(tensor), arrangement.ToString()));
}

bool IsPermutation(const std::vector<int64_t>& perm, size_t rank) {
  std::vector<int64_t> sorted = perm, axes(rank);
  std::ranges::sort(sorted);
  std::iota(axes.begin(), axes.end(), 0);
  return sorted == axes;
}

// Calls body(index in the tensor) for every element that is seen, in order.
template <typename Body>
void ForEachSeen(const Shape& seen, const std::vector<int64_t>& strides, const Body& body) {
  const int64_t count = ElementCount(seen);
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = 0, rest = i;
    for (size_t axis = seen.size(); axis-- > 0; rest /= seen[axis]) at += rest % seen[axis] * strides[axis];
    body(i, at);
  }
}

}  // namespace

Shape Arrangement::Seen(const Shape& tensor) const {
  const Shape& shape = view.empty() ? tensor : view;
  const bool images_stay = tensor.empty() || tensor[0] <= 1 || (!shape.empty() && shape[0] == tensor[0]);
  if (ElementCount(shape) != ElementCount(tensor) || !images_stay) Fail(*this, tensor);
  if (perm.empty()) return shape;
  if (!IsPermutation(perm, shape.size())) Fail(*this, tensor);
  Shape seen(shape.size());
  for (size_t axis = 0; axis < seen.size(); ++axis) seen[axis] = shape[perm[axis]];
  return seen;
}

std::string Arrangement::ToString() const {
  return (view.empty() ? "" : ShapeToString(view)) +
         (perm.empty() ? "" : fmt::format("@{}", fmt::join(perm, ",")));
}

Written WrittenAs(const Shape& seen, const std::vector<int64_t>& perm, const Shape& tensor) {
  Written written{tensor, {seen, perm}};
  if (!perm.empty()) {
    if (!IsPermutation(perm, seen.size())) Fail(written.arrangement, seen);
    for (size_t axis = 0; axis < seen.size(); ++axis) written.arrangement.view[perm[axis]] = seen[axis];
  }
  if (tensor.empty()) written.tensor = written.arrangement.view;
  written.arrangement.Seen(written.tensor);
  return written;
}

SeenStrides StridesOf(const Arrangement& arrangement, const Shape& tensor) {
  const Shape& view = arrangement.view.empty() ? tensor : arrangement.view;
  const std::vector<int64_t> dense = DenseStrides(view);
  SeenStrides seen;
  for (size_t axis = 0; axis < view.size(); ++axis) {
    const int64_t of_view = arrangement.perm.empty() ? static_cast<int64_t>(axis) : arrangement.perm[axis];
    seen.strides.push_back(dense[of_view]);
    if (of_view == 0 && !tensor.empty() && tensor[0] > 1) seen.image = static_cast<int>(axis);
  }
  return seen;
}

Tensor Arranged(const Arrangement& arrangement, const Tensor& tensor) {
  Tensor result(arrangement.Seen(tensor.shape()));
  ForEachSeen(result.shape(), StridesOf(arrangement, tensor.shape()).strides,
              [&](int64_t i, int64_t at) { result.floats()[i] = tensor.floats()[at]; });
  return result;
}

Tensor ArrangedBack(const Written& written, const Tensor& seen) {
  Tensor result(written.tensor);
  ForEachSeen(seen.shape(), StridesOf(written.arrangement, written.tensor).strides,
              [&](int64_t i, int64_t at) { result.floats()[at] = seen.floats()[i]; });
  return result;
}

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

ProductLoops::ProductLoops(const Target& cpu)
    : vector_floats(DispatchedVectorFloats(cpu)),
      add(TILESMITH_DISPATCH(cpu.isa, AddPanelProduct)),
      store(TILESMITH_DISPATCH(cpu.isa, StorePanel)),
      add_scores(TILESMITH_DISPATCH(cpu.isa, AddScores)),
      scale_row(TILESMITH_DISPATCH(cpu.isa, ScaleRow)),
      copy_runs(TILESMITH_DISPATCH(cpu.isa, CopyRuns<float>)),
      interleave(TILESMITH_DISPATCH(cpu.isa, Interleave<float>)) {}

void PackBlock(const ProductLoops& loops, const ProductBlock& block, const PackedBlock& packed) {
  if (block.other == 1) {
    loops.copy_runs({.in = block.data,
                     .out = packed.data,
                     .in_pixel_stride = block.term,
                     .out_pixel_stride = packed.term,
                     .pixels = block.terms,
                     .runs = 1,
                     .length = block.others,
                     .padded = packed.padded});
  } else if (block.term == 1) {
    loops.interleave({.in = block.data,
                      .out = packed.data,
                      .plane_stride = block.other,
                      .pixel_stride = packed.term,
                      .pixels = block.terms,
                      .channels = block.others,
                      .padded = packed.padded});
  } else {
    for (int64_t k = 0; k < block.terms; ++k) {
      float* to = packed.data + k * packed.term;
      for (int64_t i = 0; i < packed.padded; ++i) {
        to[i] = i < block.others ? block.data[k * block.term + i * block.other] : 0.0f;
      }
    }
  }
}

namespace {

// Tile by tile; rows that lie as they are multiplied are read from end to end.
void PackTiles(const ProductLoops& loops, const ProductBlock& block, int64_t tile, float* packed) {
  int64_t column = 0;
  if (block.other == 1 && block.others >= tile) {
    const int64_t whole = block.others / tile;
    loops.copy_runs({.in = block.data,
                     .out = packed,
                     .in_pixel_stride = block.term,
                     .out_pixel_stride = tile,
                     .in_run_stride = tile,
                     .out_run_stride = tile * block.terms,
                     .pixels = block.terms,
                     .runs = whole,
                     .length = tile,
                     .padded = tile});
    column = whole * tile;
  }
  for (; column < block.others; column += tile) {
    const int64_t columns = std::min(tile, block.others - column);
    const int64_t padded = RoundUp(columns, loops.vector_floats);
    PackBlock(loops, {block.data + column * block.other, block.term, block.other, block.terms, columns},
              {packed + column * block.terms, padded, padded});
  }
}

}  // namespace

void SetRight(const ProductLoops& loops, const ProductBlock& block, float* packed, PanelProduct& product,
              Packing packing) {
  constexpr int64_t kFewRows = 12;  // that do not repay packing
  constexpr int64_t kFarApart =
      512;  // rows so far apart that they evict each other from the first-level cache
  product.columns = block.others;
  const bool readable = block.other == 1 && block.others % loops.vector_floats == 0;
  const bool pays = block.term >= kFarApart && product.rows > kFewRows;
  if (readable && (packing == Packing::kWhereNeeded || (packing == Packing::kWhereItPays && !pays))) {
    product.b = block.data, product.b_term = block.term;
    return;
  }
  PackTiles(loops, block, int64_t{product.tile_vectors} * loops.vector_floats, packed);
  product.b = packed, product.tiled = true;
}

}  // namespace tilesmith
