#include <algorithm>

#include "ops/kernels/block_kernel.h"
#include "ops/kernels/lane_copy.h"
#include "ops/movement/copying.h"

namespace tilesmith {
namespace {

// A task is one row of one output block; it takes the row's columns phase by phase.
class DepthToSpaceKernel : public Kernel {
 public:
  DepthToSpaceKernel(const KernelRequest& request, const DepthToSpaceOp& op)
      : params_(op.params()),
        in_(BlockDimsOf(request.inputs[0], request.layout)),
        out_(BlockDimsOf(request.output, request.layout)) {
    for (int64_t i = 0; i < params_.bh && out_.channels > 0; ++i) {
      for (int64_t j = 0; j < params_.bw; ++j) {
        runs_.push_back(LaneRuns(out_.channels, {in_.lanes, out_.lanes},
                                 [&](int64_t o) { return op.Channel(out_.channels, o, i, j); }));
      }
    }
  }

  int64_t Tasks(int stage) const override { return Grid(stage).tasks(); }
  TaskGrid Grid(int) const override {
    return {.images = out_.images, .channels = out_.blocks, .rows = out_.height, .height = out_.height};
  }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t y = task % out_.height, plane = task / out_.height;
      const int64_t image = plane / out_.blocks, block = plane % out_.blocks;
      const float* in =
          args.inputs[0].image<float>(image) + (y + params_.top) / params_.bh * in_.width * in_.lanes;
      float* out = args.output.image<float>(image) + (block * out_.height + y) * out_.width * out_.lanes;
      const int64_t row_phase = (y + params_.top) % params_.bh * params_.bw;
      for (int64_t x = 0; x < std::min(params_.bw, out_.width); ++x) {
        CopyPhase(runs_[row_phase + (x + params_.left) % params_.bw][block], in, out, x);
      }
      const int64_t used = out_.UsedLanes(block);
      if (used < out_.lanes) ZeroLanes(out, used, out_.lanes, out_.width);
    }
  }

 private:
  // Columns x, x + bw, x + 2 * bw, ... of an output row.
  void CopyPhase(const std::vector<LaneRun>& runs, const float* in, float* out, int64_t x) const {
    const int64_t pixels = (out_.width - x + params_.bw - 1) / params_.bw;
    in += (x + params_.left) / params_.bw * in_.lanes;
    for (const LaneRun& run : runs) {
      const float* const from = in + run.source_block * in_.block_floats() + run.source_lane;
      float* const to = out + x * out_.lanes + run.lane;
      CopyLanes(ElementLanes({reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(to),
                              in_.lanes, params_.bw * out_.lanes, run.count, pixels},
                             sizeof(float)));
    }
  }

  const DepthToSpaceParams params_;
  const BlockDims in_, out_;
  std::vector<std::vector<std::vector<LaneRun>>> runs_;  // by phase i * bw + j, then by output block
};

}  // namespace

std::unique_ptr<Kernel> MakeDepthToSpaceKernel(const KernelRequest& request, const DepthToSpaceOp& op) {
  return std::make_unique<DepthToSpaceKernel>(request, op);
}

}  // namespace tilesmith
