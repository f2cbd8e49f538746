#include <algorithm>

#include "ops/kernels/block_kernel.h"
#include "ops/kernels/copying.h"
#include "ops/kernels/lane_copy.h"

namespace tilesmith {
namespace {

// Lanes [lane, lane + count) of one output block come from an input's block, or are padding (input -1).
struct Segment {
  int input;
  int64_t lane, count;
  int64_t source_offset;  // floats from the input image's start
  int64_t source_lanes;
};

class ConcatKernel : public BlockKernel {
 public:
  explicit ConcatKernel(const KernelRequest& request)
      : BlockKernel(BlockDimsOf(request.output, request.layout), false), segments_(dims().blocks) {
    int64_t channel = 0;
    for (size_t i = 0; i < request.inputs.size(); ++i) {
      const BlockDims in = BlockDimsOf(request.inputs[i], request.layout);
      for (int64_t c = 0; c < in.channels;) {
        const int64_t lane = channel % dims().lanes, source_lane = c % in.lanes;
        const int64_t count = std::min({in.channels - c, in.lanes - source_lane, dims().lanes - lane});
        segments_[channel / dims().lanes].push_back(
            {static_cast<int>(i), lane, count, c / in.lanes * in.block_floats() + source_lane, in.lanes});
        c += count;
        channel += count;
      }
    }
    if (dims().has_padding()) {
      const int64_t used = dims().UsedLanes(dims().blocks - 1);
      segments_.back().push_back({-1, used, dims().lanes - used, 0, 0});
    }
  }

 private:
  void RunPiece(const KernelArgs& args, const BlockPiece& piece) const override {
    const int64_t lanes = dims().lanes;
    const int64_t first = (piece.offset - piece.block * dims().block_floats()) / lanes;
    for (const Segment& segment : segments_[piece.block]) {
      float* out = At(args.output, piece) + segment.lane;
      if (segment.input < 0) {
        for (int64_t p = 0; p < piece.pixels; ++p) std::fill_n(out + p * lanes, segment.count, 0.0f);
        continue;
      }
      const InputView& view = args.inputs[segment.input];
      const float* in =
          view.data + piece.image * view.batch_stride + segment.source_offset + first * segment.source_lanes;
      CopyLanes({in, out, segment.source_lanes, lanes, segment.count, piece.pixels});
    }
  }

  std::vector<std::vector<Segment>> segments_;  // by output block
};

// Along an axis behind the channels, plain: a task is one run of everything from that axis on.
class RowConcatKernel : public Kernel {
 public:
  RowConcatKernel(const KernelRequest& request, int64_t axis)
      : images_(request.output[0]),
        rows_(ElementCount(Shape(request.output.begin() + 1, request.output.begin() + axis))),
        row_(ElementCount(Shape(request.output.begin() + axis, request.output.end()))) {
    for (const Shape& input : request.inputs) {
      parts_.push_back(ElementCount(Shape(input.begin() + axis, input.end())));
    }
  }

  int64_t Tasks(int) const override { return images_ * rows_; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t image = task / rows_, row = task % rows_;
      float* out = args.output.data + image * args.output.batch_stride + row * row_;
      for (size_t i = 0; i < parts_.size(); ++i) {
        const InputView& view = args.inputs[i];
        out = std::copy_n(view.data + image * view.batch_stride + row * parts_[i], parts_[i], out);
      }
    }
  }

 private:
  const int64_t images_, rows_, row_;  // rows of one image, floats of one row
  std::vector<int64_t> parts_;         // floats that each input gives to a row
};

}  // namespace

std::unique_ptr<Kernel> MakeConcatKernel(const KernelRequest& request, int64_t axis) {
  if (axis == 1) return std::make_unique<ConcatKernel>(request);
  return std::make_unique<RowConcatKernel>(request, axis);
}

}  // namespace tilesmith
