#include <algorithm>
#include <span>
#include <utility>

#include "layouts/base/check.h"
#include "layouts/base/target.h"
#include "templates/base/conv_template.h"
#include "templates/base/image_strides.h"
#include "templates/depthwise/code/planes.h"
#include "templates/depthwise_pair/config.h"
#include "templates/direct/code/row_kernels.h"
#include "templates/direct/packing.h"
#include "templates/direct/schedule.h"

namespace tilesmith::depthwise_pair {
namespace {

// The 1x1 half of a fused pair: the direct template's row kernels for neighbouring pixels.
class PointwiseRows {
 public:
  // Preconditions: a 1x1 conv of one row in one pass; cpu.isa has generated code and the machine has it.
  // `schedule` must outlive this.
  PointwiseRows(const direct::Schedule& schedule, const Target& cpu, const ConvWeights& weights);

  // The first pixel of the row, of the first channel.
  struct Row {
    const float* source = nullptr;
    float* output = nullptr;  // which need not exist in memory if that channel's chunk is not computed
    const float* residual = nullptr;
    int64_t source_shift = 0, output_shift = 0, residual_shift = 0;  // from block to block (InputView)
  };
  // Computes one chunk of output channels of the row that the schedule describes.
  void Run(const Row& row, int64_t chunk) const;

  std::span<const uint8_t> Code() const { return kernels_.Code(); }
  std::span<const std::byte> PackedWeights() const { return packed_.weights.bytes(); }

 private:
  const direct::Schedule& schedule_;
  direct::PackedWeights packed_;
  direct::RowKernels kernels_;
};

PointwiseRows::PointwiseRows(const direct::Schedule& schedule, const Target& cpu, const ConvWeights& weights)
    : schedule_(schedule),
      packed_(direct::PackWeights(schedule, cpu, weights)),
      kernels_(schedule, cpu, weights.parts) {
  TILESMITH_CHECK(schedule_.passes.size() == 1);
}

void PointwiseRows::Run(const Row& row, int64_t chunk) const {
  const int64_t channel = schedule_.chunks[chunk].first_channel;
  const int64_t out = schedule_.OutChannelOffset(channel);
  const int64_t block = channel / schedule_.out.BlockFor(schedule_.workload.oc);
  direct::RowArgs args = kernels_.Args();
  args.source = row.source;
  args.weights = packed_.weights.floats() + packed_.offsets[chunk];
  args.output = BytesPast(row.output, out + block * row.output_shift);
  args.next_out_block += row.output_shift;
  if (schedule_.workload.post.sum) {
    args.residual = BytesPast(row.residual, out + block * row.residual_shift);
    args.next_residual_block += row.residual_shift;
  }
  args.bias = packed_.bias.floats() + packed_.bias_offsets[chunk];
  args.kernel_rows = 1;
  args.next_block = schedule_.in_block_bytes + row.source_shift;
  kernels_.At(chunk, 0)(&args);
}

struct Task {
  int64_t part, row_block;
};

class PairKernel : public ConvKernel {
 public:
  PairKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights)
      : schedule_(std::move(schedule)),
        planes_(schedule_.depthwise, cpu, depthwise_first() ? Before(weights) : Main(weights)),
        pointwise_(schedule_.pointwise, cpu, depthwise_first() ? Main(weights) : Before(weights)) {}

  int64_t Tasks(int) const override { return Grid(0).tasks(); }
  TaskGrid Grid(int) const override { return GridOf(schedule_); }
  bool ShiftsBlocks() const override { return true; }
  int64_t ScratchBytes(int threads) const override {
    return threads * schedule_.scratch_floats() * kFloatBytes;
  }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    float* scratch = args.scratch_at<float>(range.thread * schedule_.scratch_floats() * kFloatBytes);
    const int64_t row_blocks = schedule_.row_blocks(), parts = schedule_.config.parts;
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t n = task / row_blocks / parts;
      depthwise::Planes::Image image = {args.inputs[0].image<float>(n), args.output.image<float>(n)};
      image.source_shift = args.inputs[0].block_shift, image.output_shift = args.output.block_shift;
      if (args.inputs.size() > 1) {
        image.residual = args.inputs[1].image<float>(n);
        image.residual_shift = args.inputs[1].block_shift;
      }
      const Task now = {task / row_blocks % parts, task % row_blocks};
      depthwise_first() ? RunDepthwiseFirst(image, now, scratch) : RunPointwiseFirst(image, now, scratch);
    }
  }

  std::vector<CodeBlob> Code() const override {
    return {{"depthwise_pair, depthwise", planes_.Code()}, {"depthwise_pair, 1x1", pointwise_.Code()}};
  }
  // The weights of the 1x1 conv are the bulk.
  std::span<const std::byte> PackedWeights() const override { return pointwise_.PackedWeights(); }

 private:
  bool depthwise_first() const { return schedule_.kind == PairKind::kDepthwiseFirst; }
  static ConvWeights Before(const ConvWeights& weights) {
    return {.weights = weights.before_weights, .bias = weights.before_bias, .parts = weights.parts};
  }
  static ConvWeights Main(const ConvWeights& weights) {
    return {.weights = weights.weights, .bias = weights.bias, .parts = weights.parts};
  }

  void RunDepthwiseFirst(const depthwise::Planes::Image& image, const Task& task, float* scratch) const {
    const depthwise::RowGeometry& rows = schedule_.depthwise.rows;
    const int64_t first_row = schedule_.MiddleRows(task.row_block).first;
    float* middle = BytesPast(scratch, -first_row * rows.out_row_bytes);
    planes_.Run({.source = image.source, .output = middle, .source_shift = image.source_shift}, 0,
                schedule_.depthwise.vectors, task.row_block);
    const int64_t offset = first_row * rows.workload.ow * schedule_.pointwise.out_pixel_bytes;
    const PointwiseRows::Row row = {.source = scratch,
                                    .output = BytesPast(image.output, offset),
                                    .residual = BytesPast(image.residual, offset),
                                    .output_shift = image.output_shift,
                                    .residual_shift = image.residual_shift};
    const RowRange chunks = schedule_.Chunks(task.part);
    for (int64_t chunk = chunks.first; chunk < chunks.last; ++chunk) pointwise_.Run(row, chunk);
  }

  void RunPointwiseFirst(const depthwise::Planes::Image& image, const Task& task, float* scratch) const {
    const depthwise::RowGeometry& rows = schedule_.depthwise.rows;
    const direct::Schedule& pointwise = schedule_.pointwise;
    const RowRange chunks = schedule_.Chunks(task.part);
    if (chunks.size() == 0) return;
    const RowRange middle_rows = schedule_.MiddleRows(task.row_block);
    const int64_t first_vector = pointwise.chunks[chunks.first].first_channel / pointwise.vector_floats;
    // Vector 0 of row 0, so that channels and rows count as in the whole middle tensor.
    float* middle = BytesPast(
        scratch, -first_vector * schedule_.depthwise.in.block_bytes - middle_rows.first * rows.in_row_bytes);
    const int64_t source_row_bytes = rows.workload.iw * pointwise.in_pixel_bytes;
    int64_t vectors = 0;
    for (int64_t chunk = chunks.first; chunk < chunks.last; ++chunk) {
      vectors += pointwise.chunks[chunk].vectors;
      for (int64_t row = middle_rows.first; row < middle_rows.last; row += schedule_.config.mid_rows) {
        // The last call may overlap the one before.
        const int64_t now = std::min(row, middle_rows.last - schedule_.config.mid_rows);
        pointwise_.Run({.source = BytesPast(image.source, now * source_row_bytes),
                        .output = BytesPast(middle, now * rows.in_row_bytes),
                        .source_shift = image.source_shift},
                       chunk);
      }
    }
    depthwise::Planes::Image planes = image;
    planes.source = middle, planes.source_shift = 0;
    planes_.Run(planes, first_vector, vectors, task.row_block);
  }

  Schedule schedule_;
  depthwise::Planes planes_;
  PointwiseRows pointwise_;
};

}  // namespace

std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights) {
  return std::make_unique<PairKernel>(std::move(schedule), cpu, weights);
}

}  // namespace tilesmith::depthwise_pair
