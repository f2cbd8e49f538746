#include <algorithm>

#include "layouts/base/check.h"
#include "templates/base/image_strides.h"
#include "templates/few_outputs/schedule.h"
#include "templates/few_outputs/x86/generator.h"

namespace tilesmith::few_outputs {

namespace {

// For chunk of output channels, input channel, kernel row, kernel column, output channel of the chunk.
AlignedBuffer PackWeights(const Schedule& g, const float* weights) {
  const ConvWorkload& w = g.workload;
  const int64_t taps = w.kh * w.kw;
  AlignedBuffer packed(w.oc * w.ic * taps * sizeof(float));
  float* to = packed.floats();
  for (int64_t first = 0; first < w.oc; first += g.config.outputs) {
    const int64_t outputs = std::min(g.config.outputs, w.oc - first);
    for (int64_t i = 0; i < w.ic * taps; ++i) {
      for (int64_t output = 0; output < outputs; ++output)
        *to++ = weights[(first + output) * w.ic * taps + i];
    }
  }
  return packed;
}

class FewOutputsKernel : public ConvKernel {
 public:
  FewOutputsKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights)
      : schedule_(std::move(schedule)),
        weights_(Pooled(PackWeights(schedule_, weights.weights), weights.pool)),
        bias_(schedule_.workload.oc * sizeof(float)),
        input_rows_(InputRowsOf(schedule_.workload, schedule_.config.tile_rows)),
        last_input_rows_(InputRowsOf(schedule_.workload, schedule_.last_rows())) {
    if (weights.bias != nullptr) std::copy_n(weights.bias, schedule_.workload.oc, bias_.floats());
    constexpr int64_t kFixedBytes = 4096;  // prologues, constants, loops
    // Vectors of 8 on AVX-512 are AVX2's.
    const Target cpu_of_lanes = schedule_.config.lanes < cpu.vector_floats() ? CapIsa(cpu, Isa::kAvx2) : cpu;
    code_ = std::make_unique<Generator>(schedule_, cpu_of_lanes,
                                        4 * (2 * EstimateCodeBytes(schedule_) + kFixedBytes));
    size_t starts[2][2] = {};
    for (int less_rows = 0; less_rows < 2; ++less_rows) {
      for (int less_outputs = 0; less_outputs < 2; ++less_outputs) {
        const KernelVariant variant = {
            less_outputs == 0 ? schedule_.config.outputs : schedule_.last_outputs(),
            less_rows == 0 ? schedule_.config.tile_rows : schedule_.last_rows()};
        if (variant.outputs > 0 && variant.rows > 0) starts[less_rows][less_outputs] = code_->Emit(variant);
      }
    }
    code_->Finish();
    auto* code = const_cast<uint8_t*>(code_->getCode());
    for (int i = 0; i < 4; ++i)
      kernels_[i / 2][i % 2] = reinterpret_cast<TileKernel>(code + starts[i / 2][i % 2]);
  }

  int64_t Tasks(int) const override { return Grid(0).tasks(); }
  TaskGrid Grid(int) const override { return GridOf(schedule_); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const int64_t chunks = schedule_.chunks(), row_blocks = schedule_.row_blocks();
    for (int64_t task = range.begin; task < range.end; ++task)
      RunTask(args, task / chunks / row_blocks, task / chunks % row_blocks, task % chunks);
  }

  std::vector<CodeBlob> Code() const override {
    return {{"few_outputs " + WorkloadToString(schedule_.workload), {code_->getCode(), code_->getSize()}}};
  }
  std::span<const std::byte> PackedWeights() const override { return weights_.bytes(); }

 private:
  // Some tiles of rows of one chunk of output channels of one image.
  void RunTask(const KernelArgs& args, int64_t image, int64_t row_block, int64_t chunk) const {
    const ConvWorkload& w = schedule_.workload;
    const int64_t first_output = chunk * schedule_.config.outputs;
    const bool less_outputs = first_output + schedule_.config.outputs > w.oc;
    const int64_t first_row = row_block * schedule_.rows_per_task();
    const int64_t end_row = std::min(w.oh, first_row + schedule_.rows_per_task());
    TileArgs tile;
    tile.weights = weights_.floats() + first_output * w.ic * w.kh * w.kw;
    tile.bias = bias_.floats() + first_output;
    for (int64_t row = first_row; row < end_row; row += schedule_.config.tile_rows) {
      const bool less_rows = row + schedule_.config.tile_rows > w.oh;
      const int64_t top = row * w.sh - w.ph;
      const int64_t out_offset = first_output * schedule_.out_plane_bytes + row * schedule_.out_row_bytes;
      tile.source = BytesPast(args.inputs[0].image<float>(image), top * schedule_.in_row_bytes);
      tile.output = BytesPast(args.output.image<float>(image), out_offset);
      if (w.post.sum) tile.residual = BytesPast(args.inputs[1].image<float>(image), out_offset);
      tile.rows_inside = RowsInside(less_rows ? last_input_rows_ : input_rows_, top, w.ih);
      kernels_[less_rows ? 1 : 0][less_outputs ? 1 : 0](&tile);
    }
  }

  Schedule schedule_;
  SharedBuffer weights_;
  AlignedBuffer bias_;
  std::vector<InputRow> input_rows_, last_input_rows_;  // of a whole tile, and of one cut off by the bottom
  std::unique_ptr<Generator> code_;
  TileKernel kernels_[2][2] = {};  // [cut off by the bottom][last, smaller chunk]
};

}  // namespace

std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights) {
  return std::make_unique<FewOutputsKernel>(std::move(schedule), cpu, weights);
}

}  // namespace tilesmith::few_outputs
