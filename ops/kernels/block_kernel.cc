#include "ops/kernels/block_kernel.h"

#include <algorithm>

namespace tilesmith {
namespace {

// Enough to hide the cost of a call, little enough to spread a small tensor over threads.
constexpr int64_t kPieceFloats = 4096, kMinPieceFloats = 512;

}  // namespace

BlockDims BlockDimsOf(const Shape& shape, const Layout& layout) {
  BlockDims dims;
  if (shape.size() <= 4) {
    const Dims4 d = ToDims4(shape);
    dims = {d.n, d.c, layout.Blocks(d.c), layout.BlockFor(d.c), d.h, d.w};
  } else {
    dims = {shape[0], shape[1], shape[1], 1, ElementCount(Shape(shape.begin() + 2, shape.end())), 1};
  }
  return dims;
}

BlockDims FlatDimsOf(const Shape& shape, const Layout& layout) {
  if (layout.is_nhwc() && shape.size() == 4) return BlockDimsOf(shape, layout);
  BlockDims dims;
  dims.images = shape.empty() ? 1 : shape[0];
  dims.height = BatchStride(shape, layout);
  dims.flat = true;
  return dims;
}

// Whole rows where several fit into a piece, so that blocks which are not tiny can be split by rows.
int64_t PiecePixels(const BlockDims& dims) {
  const int64_t row_floats = std::max<int64_t>(dims.width * dims.lanes, 1);
  if (dims.flat || row_floats > kPieceFloats)
    return std::max<int64_t>(kPieceFloats / std::max<int64_t>(dims.lanes, 1), 1);
  const int64_t least = (kMinPieceFloats + row_floats - 1) / row_floats, quarter = (dims.height + 3) / 4;
  return std::max<int64_t>(std::clamp(quarter, least, kPieceFloats / row_floats) * dims.width, 1);
}

TaskGrid GridOfPieces(const BlockDims& dims, int64_t piece_pixels) {
  const int64_t pieces = (dims.pixels() + piece_pixels - 1) / piece_pixels;
  if (dims.flat) return {.images = dims.images, .channels = pieces, .height = 1};
  return {.images = dims.images,
          .channels = dims.blocks,
          .rows = pieces,
          .height = dims.height,
          .row_units = dims.width,
          .part_units = piece_pixels};
}

BlockKernel::BlockKernel(const BlockDims& dims)
    : dims_(dims),
      piece_pixels_(PiecePixels(dims)),
      pieces_((dims.pixels() + piece_pixels_ - 1) / piece_pixels_) {}

TaskGrid BlockKernel::Grid(int) const { return GridOfPieces(dims_, piece_pixels_); }

void BlockKernel::Run(const KernelArgs& args, int, TaskRange range) const {
  for (int64_t task = range.begin; task < range.end; ++task) {
    const int64_t first = task % pieces_ * piece_pixels_;
    const int64_t plane = task / pieces_;
    BlockPiece piece;
    piece.image = plane / dims_.blocks;
    piece.block = plane % dims_.blocks;
    piece.pixels = std::min(piece_pixels_, dims_.pixels() - first);
    piece.offset = piece.block * dims_.block_floats() + first * dims_.lanes;
    RunPiece(args, piece);
  }
}

}  // namespace tilesmith
