#include <algorithm>

#include "layouts/base/sizes.h"
#include "ops/sampling/grid_sample.h"
#include "ops/sampling/grid_sample_loops.h"

namespace tilesmith {
namespace {

constexpr int64_t kTaskSamples = 4096;  // places times channels, of a task

// Tasks are runs of places of one image.
class GridSampleKernel : public Kernel {
 public:
  GridSampleKernel(const KernelRequest& request, SamplePadding padding, bool align_corners)
      : image_(request.inputs[0]),
        places_(request.output[2] * request.output[3]),
        task_places_(std::max<int64_t>(1, kTaskSamples / std::max<int64_t>(1, image_[1]))),
        padding_(padding),
        align_corners_(align_corners),
        loop_(TILESMITH_DISPATCH(request.cpu.isa, GridSampleLinear)) {}

  int64_t Tasks(int) const override { return image_[0] * CeilDiv(places_, task_places_); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const int64_t pieces = CeilDiv(places_, task_places_);
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t n = task / pieces, first = task % pieces * task_places_;
      loop_({.image = args.inputs[0].image<float>(n),
             .grid = args.inputs[1].image<float>(n) + 2 * first,
             .out = args.output.image<float>(n) + first,
             .channels = image_[1],
             .height = image_[2],
             .width = image_[3],
             .places = std::min(task_places_, places_ - first),
             .out_plane = places_,
             .padding = padding_,
             .align_corners = align_corners_});
    }
  }

 private:
  const Shape image_;
  const int64_t places_, task_places_;
  const SamplePadding padding_;
  const bool align_corners_;
  void (*const loop_)(const GridSampleRun&);
};

}  // namespace

std::unique_ptr<Kernel> GridSampleOp::MakeKernel(const KernelRequest& request) const {
  if (mode_ != SampleMode::kLinear || request.output.size() != 4) return MakeReferenceKernel(*this, request);
  return std::make_unique<GridSampleKernel>(request, padding_, align_corners_);
}

}  // namespace tilesmith
