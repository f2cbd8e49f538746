#include <algorithm>
#include <cstring>

#include "layouts/base/check.h"
#include "layouts/data_type.h"
#include "templates/grouped/lane_swaps.h"
#include "templates/grouped/schedule.h"
#include "templates/grouped/x86/generator.h"

namespace tilesmith::grouped {

namespace {

// For every output vector: by kernel row, term, kernel column, lane. Lanes past the last channel are zero;
// pairs are of bf16, the first channel's lower.
AlignedBuffer PackWeights(const Schedule& g, const float* weights) {
  const ConvWorkload& w = g.workload;
  AlignedBuffer packed(g.vectors * g.weights_per_vector() * sizeof(float));
  for (int64_t output = 0; output < w.oc; ++output) {
    float* vector = packed.floats() + output / g.vector_floats * g.weights_per_vector();
    for (int64_t channel = 0; channel < g.channels; ++channel) {
      const int64_t step = g.step_channels();
      const Term term = TermOf(g.terms(), g.config.sums, output % g.vector_floats, channel / step);
      for (int64_t row = 0; row < w.kh; ++row) {
        for (int64_t column = 0; column < w.kw; ++column) {
          const float weight = weights[((output * g.channels + channel) * w.kh + row) * w.kw + column];
          float& lane = vector[g.WeightOffset(row, term.index, column) + term.lane];
          if (g.config.pairs) {
            reinterpret_cast<uint16_t*>(&lane)[channel % step] = Bf16Bits(weight);
          } else {
            lane = weight;
          }
        }
      }
    }
  }
  return packed;
}

AlignedBuffer PackBias(const Schedule& g, const float* bias) {
  AlignedBuffer packed(g.vectors * g.vector_floats * sizeof(float));
  if (bias != nullptr) std::copy_n(bias, g.workload.oc, packed.floats());
  return packed;
}

struct Task {
  int64_t image, vector, row_block;
};

class GroupedKernel : public ConvKernel {
 public:
  GroupedKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights)
      : schedule_(std::move(schedule)),
        weights_(Pooled(PackWeights(schedule_, weights.weights), weights.pool)),
        bias_(PackBias(schedule_, weights.bias)),
        input_rows_(InputRowsOf(schedule_.workload, schedule_.config.tile_rows)),
        last_input_rows_(InputRowsOf(schedule_.workload, schedule_.last_rows())) {
    constexpr int64_t kFixedBytes = 4096;  // prologues, constants, loops
    const bool partial = schedule_.partial_lanes > 0;
    std::vector<KernelVariant> variants;
    for (const int64_t rows : {schedule_.config.tile_rows, schedule_.last_rows()}) {
      if (rows == 0) continue;
      if (schedule_.vectors > (partial ? 1 : 0)) variants.push_back({rows, false});
      if (partial) variants.push_back({rows, true});
    }
    code_ = std::make_unique<Generator>(schedule_, CpuOfLanes(cpu),
                                        variants.size() * (2 * EstimateCodeBytes(schedule_) + kFixedBytes));
    std::vector<size_t> starts;
    starts.reserve(variants.size());
    for (const KernelVariant& variant : variants) starts.push_back(code_->Emit(variant));
    code_->Finish();
    for (size_t i = 0; i < variants.size(); ++i) {
      const bool whole = variants[i].rows == schedule_.config.tile_rows;
      kernels_[whole ? 0 : 1][variants[i].partial ? 1 : 0] =
          reinterpret_cast<TileKernel>(const_cast<uint8_t*>(code_->getCode()) + starts[i]);
    }
  }

  int64_t Tasks(int) const override { return Grid(0).tasks(); }
  TaskGrid Grid(int) const override { return GridOf(schedule_); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    for (int64_t task = range.begin; task < range.end; ++task) RunTask(args, Locate(task));
  }

  std::vector<CodeBlob> Code() const override {
    return {{"grouped " + WorkloadToString(schedule_.workload), {code_->getCode(), code_->getSize()}}};
  }
  std::span<const std::byte> PackedWeights() const override { return weights_.bytes(); }

 private:
  // Vectors of 8 on AVX-512 are AVX2's.
  Target CpuOfLanes(const Target& cpu) const {
    return schedule_.vector_floats < cpu.vector_floats() ? CapIsa(cpu, Isa::kAvx2) : cpu;
  }

  Task Locate(int64_t task) const {
    const int64_t vectors = schedule_.vectors, row_blocks = schedule_.row_blocks();
    if (schedule_.config.oc_inner)
      return {task / vectors / row_blocks, task % vectors, task / vectors % row_blocks};
    return {task / row_blocks / vectors, task / row_blocks % vectors, task % row_blocks};
  }

  void RunTask(const KernelArgs& args, const Task& task) const {
    const ConvWorkload& w = schedule_.workload;
    const int64_t first_row = task.row_block * schedule_.rows_per_task();
    const int64_t end_row = std::min(w.oh, first_row + schedule_.rows_per_task());
    const bool last_vector = task.vector + 1 == schedule_.vectors;
    const bool partial = last_vector && schedule_.partial_lanes > 0;
    const float* source = BytesPast(args.inputs[0].image<float>(task.image),
                                    schedule_.in.ChannelOffset(schedule_.FirstInput(task.vector)));
    float* output = args.output.image<float>(task.image);
    const int64_t channel = schedule_.out.ChannelOffset(task.vector * schedule_.vector_floats);

    TileArgs tile;
    tile.weights = weights_.floats() + task.vector * schedule_.weights_per_vector();
    tile.bias = bias_.floats() + task.vector * schedule_.vector_floats;
    for (int64_t row = first_row; row < end_row; row += schedule_.config.tile_rows) {
      const bool whole = row + schedule_.config.tile_rows <= w.oh;
      const int64_t top = row * w.sh - w.ph;
      const int64_t out_offset = channel + row * schedule_.out.row_bytes;
      tile.source = BytesPast(source, top * schedule_.in.row_bytes);
      tile.output = BytesPast(output, out_offset);
      if (w.post.sum) {
        tile.residual = BytesPast(args.inputs[1].image<float>(task.image), out_offset);
      }
      tile.rows_inside = RowsInside(whole ? input_rows_ : last_input_rows_, top, w.ih);
      kernels_[whole ? 0 : 1][partial ? 1 : 0](&tile);
    }
    if (last_vector) ClearPadding(output, first_row, end_row);
  }

  // Vectors that a block has beyond the last channel.
  void ClearPadding(float* output, int64_t first_row, int64_t end_row) const {
    for (int64_t i = 0; i < schedule_.zero_vectors; ++i) {
      const int64_t channel = (schedule_.vectors + i) * schedule_.vector_floats;
      const int64_t first = schedule_.out.ChannelOffset(channel) + first_row * schedule_.out.row_bytes;
      for (int64_t pixel = 0; pixel < (end_row - first_row) * schedule_.workload.ow; ++pixel) {
        std::memset(BytesPast(output, first + pixel * schedule_.out.pixel_bytes), 0,
                    static_cast<size_t>(schedule_.vector_floats * schedule_.out.element_bytes));
      }
    }
  }

  Schedule schedule_;
  SharedBuffer weights_;
  AlignedBuffer bias_;
  std::vector<InputRow> input_rows_, last_input_rows_;  // of a whole tile, and of one cut off by the bottom
  std::unique_ptr<Generator> code_;
  TileKernel kernels_[2][2] = {};  // [cut off by the bottom][partial vector]
};

}  // namespace

std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights) {
  return std::make_unique<GroupedKernel>(std::move(schedule), cpu, weights);
}

}  // namespace tilesmith::grouped
