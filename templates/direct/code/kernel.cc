#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "layouts/base/check.h"
#include "layouts/base/row_window.h"
#include "layouts/convert_runs.h"
#include "ops/elementwise/elementwise_loops.h"
#include "templates/base/conv_template.h"
#include "templates/base/image_strides.h"
#include "templates/direct/code/row_kernels.h"
#include "templates/direct/packing.h"
#include "templates/direct/schedule.h"

namespace tilesmith::direct {
namespace {

// Input ops (ConvWorkload::pre) of the direct template. Applying them to every element as it is broadcast
// would repeat them for every chunk of output channels; instead the rows that a task reads are transformed
// once into memory of the thread, in the input's own layout, where the row kernels find them unchanged. Tasks
// that share rows follow each other, so all chunks use what was prepared for the first. Inputs that are
// stored in another type than is multiplied are converted on the way.
//
// Where the row kernels read an image.
struct InputRows {
  const float* data = nullptr;  // row `first_row` of the first block
  int64_t first_row = 0;
  int64_t block_bytes = 0;  // from one block to the next
};

class PreparedInput {
 public:
  PreparedInput(const Schedule& schedule, const Target& cpu, const ConvWeights& weights);

  // Memory for one thread's rows: whole cache lines.
  int64_t ThreadBytes() const { return rows_bytes_ + line_bytes_; }
  // Transforms what the output rows [first, last) of `image` read, into `to`. Thread-safe.
  InputRows Prepare(const InputView& view, int64_t image, RowRange rows, std::byte* to) const;

 private:
  // `pixels` pixels of a block; as bf16 by way of a line of floats where there are input ops.
  void PrepareFloats(const std::byte* from, float* to, int64_t block, int64_t pixels) const;
  void PrepareBf16(const std::byte* from, std::byte* to, float* line, int64_t block, int64_t pixels) const;

  const Schedule schedule_;
  const Isa isa_;
  int64_t block_ = 0, blocks_ = 0, most_rows_ = 0;
  int64_t rows_bytes_ = 0, line_bytes_ = 0;
  SharedBuffer scale_, shift_;  // zero for the channels that pad the last block
};

PreparedInput::PreparedInput(const Schedule& schedule, const Target& cpu, const ConvWeights& weights)
    : schedule_(schedule), isa_(cpu.isa) {
  constexpr int64_t kLineBytes = 64;
  const ConvWorkload& w = schedule.workload;
  block_ = schedule.in.BlockFor(w.ic);
  blocks_ = (w.ic + block_ - 1) / block_;
  most_rows_ = InputRowsOfTask(w, schedule.config);
  const auto whole_lines = [](int64_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes; };
  rows_bytes_ = whole_lines(PreparedBytes(w, schedule.config));
  const bool by_way_of_floats = schedule.config.factors == Factors::kBf16 && w.pre.any();
  line_bytes_ = by_way_of_floats ? whole_lines(schedule.iw * block_ * kFloatBytes) : 0;
  scale_ = FloatsPart(weights.parts, weights.scale, w.ic, blocks_ * block_, 1);
  shift_ = FloatsPart(weights.parts, weights.shift, w.ic, blocks_ * block_);
}

InputRows PreparedInput::Prepare(const InputView& view, int64_t image, RowRange output, std::byte* to) const {
  const ConvWorkload& w = schedule_.workload;
  const auto [first, last] = output;
  const int64_t top = std::max<int64_t>(first * w.sh - w.ph, 0);
  const int64_t bottom = std::min(schedule_.ih, (last - 1) * w.sh - w.ph + (w.kh - 1) * (w.dh + 1) + 1);
  const int64_t stored_row_bytes = schedule_.iw * block_ * schedule_.in.element_bytes();
  for (int64_t b = 0; b < blocks_ && top < bottom; ++b) {
    const std::byte* from =
        view.image<std::byte>(image) + (b * schedule_.ih + top) * stored_row_bytes + b * view.block_shift;
    std::byte* rows = to + b * most_rows_ * schedule_.in_row_bytes;
    if (schedule_.config.factors == Factors::kF32) {
      PrepareFloats(from, reinterpret_cast<float*>(rows), b, (bottom - top) * schedule_.iw);
      continue;
    }
    auto* line = reinterpret_cast<float*>(to + rows_bytes_);
    for (int64_t row = top; row < bottom; ++row) {
      PrepareBf16(from, rows, line, b, schedule_.iw);
      from += stored_row_bytes;
      rows += schedule_.in_row_bytes;
    }
  }
  return {reinterpret_cast<const float*>(to), top, most_rows_ * schedule_.in_row_bytes};
}

void PreparedInput::PrepareFloats(const std::byte* from, float* to, int64_t block, int64_t pixels) const {
  const ConvWorkload& w = schedule_.workload;
  const int64_t elements = pixels * block_;
  const auto* floats = reinterpret_cast<const float*>(from);
  if (schedule_.in.type() == DataType::kBf16) {
    TILESMITH_DISPATCH(isa_, ConvertRuns<uint16_t>)
    ({.in = reinterpret_cast<const uint16_t*>(from), .out = to, .length = elements, .padded = elements});
    floats = to;
  }
  if (!w.pre.any()) return;
  TILESMITH_DISPATCH(isa_, ScaleShiftLanes<float>)
  ({floats, to, scale_.floats() + block * block_, shift_.floats() + block * block_, block_, pixels},
   w.pre.activation);
}

void PreparedInput::PrepareBf16(const std::byte* from, std::byte* to, float* line, int64_t block,
                                int64_t pixels) const {
  const int64_t elements = pixels * block_;
  const auto* floats = reinterpret_cast<const float*>(from);
  if (schedule_.workload.pre.any()) {
    PrepareFloats(from, line, block, pixels);
    floats = line;
  }
  TILESMITH_DISPATCH(isa_, ConvertRuns<float>)
  ({.in = floats, .out = reinterpret_cast<uint16_t*>(to), .length = elements, .padded = elements});
}

struct Task {
  int64_t image, chunk, row_block;
};

class DirectKernel : public ConvKernel {
 public:
  DirectKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights)
      : schedule_(std::move(schedule)),
        packed_(PackWeights(schedule_, cpu, weights)),
        kernels_(schedule_, cpu, weights.parts) {
    if (schedule_.prepares()) prepared_.emplace(schedule_, cpu, weights);
  }

  int64_t Tasks(int) const override { return Grid(0).tasks(); }
  TaskGrid Grid(int) const override { return GridOf(schedule_); }
  bool ShiftsBlocks() const override { return true; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    InputRows rows;
    for (int64_t index = range.begin; index < range.end; ++index) {
      const Task task = Locate(index);
      const bool other_rows = index == range.begin || task.chunk == 0 || !prepared_;
      if (other_rows) rows = RowsOf(args, task, range.thread);
      RunTask(args, task, rows);
    }
  }

  int64_t ScratchBytes(int threads) const override { return threads * ThreadBytes(); }

  std::vector<CodeBlob> Code() const override {
    return {{"direct " + WorkloadToString(schedule_.workload), kernels_.Code()}};
  }
  std::span<const std::byte> PackedWeights() const override { return packed_.weights.bytes(); }

 private:
  // A thread's scratch.
  int64_t ThreadBytes() const { return prepared_ ? prepared_->ThreadBytes() : 0; }

  Task Locate(int64_t task) const {
    const int64_t row_blocks = schedule_.row_blocks();
    const auto chunks = static_cast<int64_t>(schedule_.chunks.size());
    if (schedule_.config.oc_inner)
      return {task / chunks / row_blocks, task % chunks, task / chunks % row_blocks};
    return {task / row_blocks / chunks, task / row_blocks % chunks, task % row_blocks};
  }

  int64_t FirstRow(const Task& task) const { return task.row_block * schedule_.config.rows; }
  int64_t LastRow(const Task& task) const {
    return std::min(schedule_.oh, FirstRow(task) + schedule_.config.rows);
  }

  // The input of a task: the image itself, or what the input ops make of the rows it reads.
  InputRows RowsOf(const KernelArgs& args, const Task& task, int thread) const {
    const InputView& view = args.inputs[0];
    if (!prepared_) return {view.image<float>(task.image), 0, schedule_.in_block_bytes + view.block_shift};
    return prepared_->Prepare(view, task.image, {FirstRow(task), LastRow(task)},
                              args.scratch_at<std::byte>(thread * ThreadBytes()));
  }

  void RunTask(const KernelArgs& args, const Task& task, const InputRows& rows) const {
    for (size_t pass = 0; pass < schedule_.passes.size(); ++pass) {
      for (int64_t row = FirstRow(task); row < LastRow(task); ++row) RunRow({args, task, rows}, pass, row);
    }
  }

  struct RunningTask {
    const KernelArgs& args;
    const Task& task;
    const InputRows& rows;
  };

  void RunRow(const RunningTask& running, size_t pass_index, int64_t row) const {
    const auto& [args, task, rows] = running;
    const ConvWorkload& w = schedule_.workload;
    const Chunk& chunk = schedule_.chunks[task.chunk];
    const Pass& pass = schedule_.passes[pass_index];
    int64_t first = 0, last = 0;
    schedule_.KernelRows(row, &first, &last);
    const int64_t in_row = row * w.sh - w.ph + first * (w.dh + 1);
    const int64_t in_channel = chunk.group * (w.ic / w.g) + pass.first_channel;
    const int64_t out_offset =
        schedule_.OutChannelOffset(chunk.first_channel) + row * schedule_.out_row_bytes;
    const int64_t step_bytes = StepWeights(schedule_, chunk) * schedule_.config.weight_word_bytes();
    const int64_t kernel_row_bytes = step_bytes / w.kh;
    const int64_t block = schedule_.in.BlockFor(w.ic);
    const int64_t out_block = chunk.first_channel / schedule_.out.BlockFor(w.oc);

    RowArgs row_args = kernels_.Args();
    row_args.source = BytesPast(rows.data, in_channel / block * rows.block_bytes +
                                               in_channel % block * schedule_.config.in_bytes() +
                                               (in_row - rows.first_row) * schedule_.in_row_bytes);
    row_args.weights =
        BytesPast(packed_.weights.floats(),
                  packed_.offsets[task.chunk] * schedule_.config.weight_word_bytes() +
                      schedule_.config.Steps(pass.first_channel) * step_bytes + first * kernel_row_bytes);
    row_args.output =
        BytesPast(args.output.image<float>(task.image), out_offset + out_block * args.output.block_shift);
    row_args.next_out_block += args.output.block_shift;
    if (w.post.sum) {
      const InputView& residual = args.inputs[1];
      row_args.residual =
          BytesPast(residual.image<float>(task.image), out_offset + out_block * residual.block_shift);
      row_args.next_residual_block += residual.block_shift;
    }
    row_args.bias = packed_.bias.floats() + packed_.bias_offsets[task.chunk];
    row_args.kernel_rows = last - first;
    row_args.next_channel -= (last - first) * row_args.next_row;
    row_args.next_block = rows.block_bytes;
    row_args.skipped_weights = (w.kh - (last - first)) * kernel_row_bytes;
    kernels_.At(task.chunk, pass_index)(&row_args);
  }

  Schedule schedule_;
  struct PackedWeights packed_;
  std::optional<PreparedInput> prepared_;
  RowKernels kernels_;
};

}  // namespace

std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights) {
  return std::make_unique<DirectKernel>(std::move(schedule), cpu, weights);
}

}  // namespace tilesmith::direct
