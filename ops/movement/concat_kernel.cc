#include <algorithm>

#include "ops/kernels/block_kernel.h"
#include "ops/kernels/lane_copy.h"
#include "ops/movement/copying.h"

namespace tilesmith {
namespace {

// Lanes [lane, lane + count) of one output block come from an input's block, or are padding (input -1).
struct Segment {
  int input;
  int64_t lane, count;
  int64_t source_offset;  // elements from the input image's start
  int64_t source_lanes;
};

class ConcatKernel : public BlockKernel {
 public:
  explicit ConcatKernel(const KernelRequest& request)
      : BlockKernel(BlockDimsOf(request.output, request.layout)),
        bytes_(ElementBytes(request.layout.type())),
        segments_(dims().blocks) {
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
      std::byte* const out =
          args.output.image<std::byte>(piece.image) + (piece.offset + segment.lane) * bytes_;
      if (segment.input < 0) {
        for (int64_t p = 0; p < piece.pixels; ++p)
          std::fill_n(out + p * lanes * bytes_, segment.count * bytes_, std::byte{0});
        continue;
      }
      const InputView& view = args.inputs[segment.input];
      const std::byte* const in = view.image<std::byte>(piece.image) +
                                  (segment.source_offset + first * segment.source_lanes) * bytes_;
      CopyLanes(ElementLanes({in, out, segment.source_lanes, lanes, segment.count, piece.pixels}, bytes_));
    }
  }

  const int64_t bytes_;                         // of an element
  std::vector<std::vector<Segment>> segments_;  // by output block
};

}  // namespace

std::unique_ptr<Kernel> MakeConcatKernel(const KernelRequest& request) {
  return std::make_unique<ConcatKernel>(request);
}

}  // namespace tilesmith
