// A tensor as kernels walk it, and the kernel skeleton for computations that treat every block alike.
#pragma once

#include <algorithm>

#include "layouts/base/kernel.h"
#include "layouts/layout.h"

namespace tilesmith {

// images x blocks x pixels x lanes, the last adjacent in memory; only images may lie apart.
struct BlockDims {
  int64_t images = 1, channels = 1, blocks = 1, lanes = 1;
  int64_t height = 1, width = 1;  // of any rank in plain layout: all trailing sizes are the height
  bool flat = false;              // each image is one run of `height` floats
  int64_t pixels() const { return height * width; }
  int64_t block_floats() const { return pixels() * lanes; }
  // Lanes of block `block` that hold channels; the others are padding.
  int64_t UsedLanes(int64_t block) const {
    return block + 1 < blocks ? lanes : channels - (blocks - 1) * lanes;
  }
  bool has_padding() const { return channels != blocks * lanes; }
};
// Precondition: rank <= 4 or plain layout.
BlockDims BlockDimsOf(const Shape& shape, const Layout& layout);
// For functions that map zeros to zero: padding counts as channels, and each image in another layout than
// NHWC is one run of floats.
BlockDims FlatDimsOf(const Shape& shape, const Layout& layout);

// Pixels of a task where each block is cut into pieces of some thousand floats; and such tasks, block by
// block.
int64_t PiecePixels(const BlockDims& dims);
TaskGrid GridOfPieces(const BlockDims& dims, int64_t piece_pixels);

// Writes zeros to lanes [used, lanes) of `pixels` pixels.
template <typename T>
void ZeroLanes(T* out, int64_t used, int64_t lanes, int64_t pixels) {
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    std::fill(out + pixel * lanes + used, out + (pixel + 1) * lanes, T{0});
  }
}

// Some pixels of one block of one image; `offset` is where they start, in elements from the image's start.
struct BlockPiece {
  int64_t image, block, pixels, offset;
};

// Output and inputs of the same dims, cut into pieces of a few thousand elements: each piece is a task.
class BlockKernel : public Kernel {
 public:
  explicit BlockKernel(const BlockDims& dims);
  int64_t Tasks(int stage) const override { return Grid(stage).tasks(); }
  TaskGrid Grid(int stage) const override;
  bool ShiftsBlocks() const override { return true; }  // as long as pieces are found by At
  void Run(const KernelArgs& args, int stage, TaskRange range) const override;

 protected:
  virtual void RunPiece(const KernelArgs& args, const BlockPiece& piece) const = 0;
  const BlockDims& dims() const { return dims_; }

 private:
  const BlockDims dims_;
  const int64_t piece_pixels_;
  const int64_t pieces_;  // of one block
};

// The address of a piece in an input or in the output.
template <typename T>
const T* At(const InputView& view, const BlockPiece& piece) {
  return view.image<T>(piece.image) + piece.offset +
         piece.block * view.block_shift / static_cast<int64_t>(sizeof(T));
}
template <typename T>
T* At(const OutputView& view, const BlockPiece& piece) {
  return view.image<T>(piece.image) + piece.offset +
         piece.block * view.block_shift / static_cast<int64_t>(sizeof(T));
}

// Zeros in the padding lanes of a piece.
template <typename T>
void ZeroPadding(const BlockDims& dims, const BlockPiece& piece, T* out) {
  const int64_t used = dims.UsedLanes(piece.block);
  if (used < dims.lanes) ZeroLanes(out, used, dims.lanes, piece.pixels);
}

}  // namespace tilesmith
