#include <algorithm>

#include "ops/kernels/block_kernel.h"
#include "ops/kernels/lane_copy.h"
#include "ops/movement/copying.h"

namespace tilesmith {
namespace {

// A task is one row of one output block.
class SliceKernel : public Kernel {
 public:
  SliceKernel(const KernelRequest& request, const std::vector<SliceAxis>& axes)
      : in_(BlockDimsOf(request.inputs[0], request.layout)),
        out_(BlockDimsOf(request.output, request.layout)),
        bytes_(ElementBytes(request.layout.type())) {
    std::copy(axes.begin(), axes.end(), axes_);
    runs_ = LaneRuns(out_.channels, {in_.lanes, out_.lanes},
                     [&](int64_t c) { return axes_[1].start + c * axes_[1].step; });
  }

  int64_t Tasks(int) const override {
    return out_.images * static_cast<int64_t>(runs_.size()) * out_.height * (out_.width > 0);
  }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const auto& [images, channels, rows, columns] = axes_;
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t y = task % out_.height, plane = task / out_.height;
      const int64_t image = plane / out_.blocks, block = plane % out_.blocks;
      const int64_t from_row = rows.start + y * rows.step, from_image = images.start + image * images.step;
      const std::byte* const in = args.inputs[0].image<std::byte>(from_image) +
                                  (from_row * in_.width + columns.start) * in_.lanes * bytes_;
      std::byte* const out =
          args.output.image<std::byte>(image) + (block * out_.height + y) * out_.width * out_.lanes * bytes_;
      for (const LaneRun& run : runs_[block]) {
        const int64_t from = run.source_block * in_.block_floats() + run.source_lane;
        CopyLanes(ElementLanes({in + from * bytes_, out + run.lane * bytes_, columns.step * in_.lanes,
                                out_.lanes, run.count, out_.width},
                               bytes_));
      }
      const int64_t used = out_.UsedLanes(block) * bytes_, lanes = out_.lanes * bytes_;
      for (int64_t x = 0; used < lanes && x < out_.width; ++x)
        std::fill_n(out + x * lanes + used, lanes - used, std::byte{0});
    }
  }

 private:
  const BlockDims in_, out_;
  const int64_t bytes_;  // of an element
  SliceAxis axes_[4];
  std::vector<std::vector<LaneRun>> runs_;  // by output block
};

}  // namespace

std::unique_ptr<Kernel> MakeSliceKernel(const KernelRequest& request, const std::vector<SliceAxis>& axes) {
  return std::make_unique<SliceKernel>(request, axes);
}

}  // namespace tilesmith
