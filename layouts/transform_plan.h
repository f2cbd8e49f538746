// How a layout transform is cut: which channels move together, and which slabs are tasks.
//
// With P = H * W pixels, a tensor in NCHW[x]c is a list of blocks, each a dense P x min(x, C) matrix. A
// transform from x to y cuts the channels wherever either side starts a block. Between two cuts the channels
// of a pixel are adjacent on both sides, unless a side has x = 1, where a channel's pixels are. So there are
// four kinds of movement, and each comes down to one loop of transform_moves.h or to memcpy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "layouts/base/kernel.h"
#include "layouts/layout.h"

namespace tilesmith {

enum class MoveKind {
  kFlat,          // the same order on both sides: one run of elements an image, then zeros
  kRuns,          // blocks to blocks
  kInterleave,    // planes to blocks
  kDeinterleave,  // blocks to planes
};

// `runs` runs of `length` adjacent channels, equally spaced on either side. Offsets are those of pixel 0
// within an image, in elements.
struct ChannelMove {
  int64_t in_offset = 0, out_offset = 0;
  int64_t in_run_stride = 0, out_run_stride = 0;
  int64_t runs = 1;
  int64_t length = 0;
  int64_t padded = 0;  // channels written; those from `length` on are zeros
  // The block of channels that it begins in, and from run to run how many further, on either side.
  int64_t in_block = 0, out_block = 0;
  int64_t in_run_blocks = 0, out_run_blocks = 0;
  friend bool operator==(const ChannelMove&, const ChannelMove&) = default;
};

// Of images that are not all there (InputView::block_shift): elements from one block to the next beside those
// of a whole one.
struct MoveShifts {
  int64_t in = 0, out = 0;
};
inline MoveShifts MoveShiftsOf(const KernelArgs& args, int64_t in_bytes, int64_t out_bytes) {
  return {args.inputs[0].block_shift / in_bytes, args.output.block_shift / out_bytes};
}

// A task is one image, one chunk of pixels and one group of adjacent moves; every output element belongs to
// exactly one task.
struct MovePlan {
  MoveKind kind = MoveKind::kFlat;
  int64_t images = 0;
  int64_t pixels = 1;
  int64_t row_pixels = 1;       // of a row of the image
  int64_t chunks = 1;           // of pixels
  int64_t chunk_pixels = 1;     // the last chunk may be smaller
  int64_t moves_a_task = 1;     // the last group of moves may be smaller
  bool chunks_outside = false;  // task order: all groups of a chunk, or all chunks of a group
  int64_t in_pixel_stride = 0, out_pixel_stride = 0;
  std::vector<ChannelMove> moves;

  int64_t Groups() const { return (static_cast<int64_t>(moves.size()) + moves_a_task - 1) / moves_a_task; }
  int64_t TasksPerImage() const { return chunks * Groups(); }
  // What a task of an image moves.
  struct TaskPart {
    int64_t chunk = 0;
    int64_t first_pixel = 0, last_pixel = 0;  // of the chunk
    int64_t first_move = 0, last_move = 0;
  };
  TaskPart PartOf(int64_t task) const;
  TaskGrid Grid() const;
  // First pixel of a chunk; chunk == chunks gives the end. Inside, chunks of an aligned plane are whole cache
  // lines.
  int64_t ChunkBegin(int64_t chunk) const { return std::min(chunk * chunk_pixels, pixels); }
  // A move of the image whose blocks lie so.
  ChannelMove Shifted(size_t move, const MoveShifts& shifts) const;
};

// Preconditions: rank <= 4 or both layouts NCHW. Sizes are those of the output's type. Pure.
MovePlan PlanTransform(const Shape& shape, const Layout& from, const Layout& to);

}  // namespace tilesmith
