#include "templates/depthwise_pair/pair_kernel.h"

#include <algorithm>
#include <utility>

#include "templates/depthwise/planes.h"
#include "templates/depthwise_pair/pointwise_rows.h"
#include "templates/image_strides.h"

namespace tilesmith::depthwise_pair {
namespace {

// A task is one row block and one part of the 1x1 conv's output channels of one image.
struct Task {
  int64_t part, row_block;
};

class PairKernel : public ConvKernel {
 public:
  PairKernel(PairGeometry geometry, const CpuInfo& cpu, const ConvWeights& weights)
      : geometry_(std::move(geometry)) {
    const ConvWeights before = {.weights = weights.before_weights, .bias = weights.before_bias};
    const ConvWeights main = {.weights = weights.weights, .bias = weights.bias};
    const bool depthwise_first = geometry_.kind == PairKind::kDepthwiseFirst;
    planes_ = depthwise::BuildPlanes(geometry_.depthwise, cpu, depthwise_first ? before : main);
    pointwise_ = BuildPointwiseRows(geometry_.pointwise, cpu, depthwise_first ? main : before);
  }

  int64_t Tasks(int) const override {
    return geometry_.depthwise.rows.workload.mb * geometry_.config.parts * geometry_.row_blocks();
  }
  int64_t ScratchFloats(int threads) const override { return threads * geometry_.scratch_floats(); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    float* scratch = args.scratch + range.thread * geometry_.scratch_floats();
    const int64_t row_blocks = geometry_.row_blocks(), parts = geometry_.config.parts;
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t n = task / row_blocks / parts;
      depthwise::Planes::Image image = {args.inputs[0].data + n * args.inputs[0].batch_stride,
                                        args.output.data + n * args.output.batch_stride};
      if (args.inputs.size() > 1) image.residual = args.inputs[1].data + n * args.inputs[1].batch_stride;
      const Task now = {task / row_blocks % parts, task % row_blocks};
      geometry_.kind == PairKind::kDepthwiseFirst ? RunDepthwiseFirst(image, now, scratch)
                                                  : RunPointwiseFirst(image, now, scratch);
    }
  }

  std::vector<CodeBlob> Code() const override {
    return {{"depthwise_pair, depthwise", planes_->Code()}, {"depthwise_pair, 1x1", pointwise_->Code()}};
  }
  // Those of the 1x1 conv, the bulk.
  std::span<const float> PackedWeights() const override { return pointwise_->PackedWeights(); }

 private:
  void RunDepthwiseFirst(const depthwise::Planes::Image& image, const Task& task, float* scratch) const {
    const depthwise::RowGeometry& rows = geometry_.depthwise.rows;
    const int64_t first_row = geometry_.MiddleRows(task.row_block).first;
    float* middle = BytesPast(scratch, -first_row * rows.out_row_bytes);
    planes_->Run({image.source, middle, nullptr}, 0, geometry_.depthwise.vectors, task.row_block);
    const int64_t offset = first_row * rows.workload.ow * geometry_.pointwise.out_pixel_bytes;
    const PointwiseRows::Row row = {scratch, BytesPast(image.output, offset),
                                    BytesPast(image.residual, offset)};
    const RowRange chunks = geometry_.Chunks(task.part);
    for (int64_t chunk = chunks.first; chunk < chunks.last; ++chunk) pointwise_->Run(row, chunk);
  }

  void RunPointwiseFirst(const depthwise::Planes::Image& image, const Task& task, float* scratch) const {
    const depthwise::RowGeometry& rows = geometry_.depthwise.rows;
    const direct::Geometry& pointwise = geometry_.pointwise;
    const RowRange chunks = geometry_.Chunks(task.part);
    if (chunks.size() == 0) return;
    const RowRange middle_rows = geometry_.MiddleRows(task.row_block);
    const int64_t first_vector = pointwise.chunks[chunks.first].first_channel / pointwise.vector_floats;
    // Vector 0 of row 0, so that channels and rows count as in the whole middle tensor.
    float* middle = BytesPast(
        scratch, -first_vector * geometry_.depthwise.in.block_bytes - middle_rows.first * rows.in_row_bytes);
    const int64_t source_row_bytes = rows.workload.iw * pointwise.in_pixel_bytes;
    int64_t vectors = 0;
    for (int64_t chunk = chunks.first; chunk < chunks.last; ++chunk) {
      vectors += pointwise.chunks[chunk].vectors;
      for (int64_t row = middle_rows.first; row < middle_rows.last; row += geometry_.config.mid_rows) {
        // The last call may overlap the one before.
        const int64_t now = std::min(row, middle_rows.last - geometry_.config.mid_rows);
        pointwise_->Run({BytesPast(image.source, now * source_row_bytes),
                         BytesPast(middle, now * rows.in_row_bytes), nullptr},
                        chunk);
      }
    }
    planes_->Run({middle, image.output, image.residual}, first_vector, vectors, task.row_block);
  }

  PairGeometry geometry_;
  std::unique_ptr<depthwise::Planes> planes_;
  std::unique_ptr<PointwiseRows> pointwise_;
};

}  // namespace

std::unique_ptr<ConvKernel> BuildPairKernel(PairGeometry geometry, const CpuInfo& cpu,
                                            const ConvWeights& weights) {
  return std::make_unique<PairKernel>(std::move(geometry), cpu, weights);
}

}  // namespace tilesmith::depthwise_pair
