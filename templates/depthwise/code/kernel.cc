#include <algorithm>
#include <utility>

#include "templates/depthwise/code/planes.h"
#include "templates/depthwise/schedule.h"

namespace tilesmith::depthwise {
namespace {

class DepthwiseKernel : public ConvKernel {
 public:
  DepthwiseKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights)
      : schedule_(std::move(schedule)), planes_(schedule_, cpu, weights) {}

  int64_t Tasks(int) const override { return Grid(0).tasks(); }
  TaskGrid Grid(int) const override { return GridOf(schedule_); }
  bool ShiftsBlocks() const override { return true; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const int64_t row_blocks = schedule_.row_blocks(), vector_blocks = schedule_.vector_blocks();
    const int64_t vectors = schedule_.rows.config.vectors;
    const bool rows_outside = schedule_.rows.config.block == 0;
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t n = task / row_blocks / vector_blocks;
      const int64_t rows = rows_outside ? task / vector_blocks % row_blocks : task % row_blocks;
      const int64_t first =
          (rows_outside ? task % vector_blocks : task / row_blocks % vector_blocks) * vectors;
      Planes::Image image = {args.inputs[0].image<float>(n), args.output.image<float>(n)};
      image.source_shift = args.inputs[0].block_shift, image.output_shift = args.output.block_shift;
      if (schedule_.rows.workload.post.sum) {
        image.residual = args.inputs[1].image<float>(n);
        image.residual_shift = args.inputs[1].block_shift;
      }
      planes_.Run(image, first, std::min(vectors, schedule_.vectors - first), rows);
    }
  }

  std::vector<CodeBlob> Code() const override {
    return {{"depthwise " + WorkloadToString(schedule_.rows.workload), planes_.Code()}};
  }
  std::span<const std::byte> PackedWeights() const override { return planes_.PackedWeights(); }

 private:
  Schedule schedule_;
  Planes planes_;
};

}  // namespace

std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights) {
  return std::make_unique<DepthwiseKernel>(std::move(schedule), cpu, weights);
}

}  // namespace tilesmith::depthwise
