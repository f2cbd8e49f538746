#include <algorithm>
#include <optional>

#include "layouts/base/check.h"
#include "templates/base/image_strides.h"
#include "templates/direct/packing.h"
#include "templates/direct/prepared_input.h"
#include "templates/direct/schedule.h"
#include "templates/direct/x86/row_kernels.h"

namespace tilesmith::direct {

namespace {

struct Task {
  int64_t image, chunk, row_block;
};

class DirectKernel : public ConvKernel {
 public:
  DirectKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights)
      : schedule_(std::move(schedule)),
        packed_(PackWeights(schedule_, cpu, weights)),
        kernels_(schedule_, cpu) {
    if (schedule_.prepares()) prepared_.emplace(schedule_, cpu, weights);
  }

  int64_t Tasks(int) const override { return Grid(0).tasks(); }
  TaskGrid Grid(int) const override { return GridOf(schedule_); }

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
    const auto* image = args.inputs[0].image<std::byte>(task.image);
    if (!prepared_) return {reinterpret_cast<const float*>(image), 0, schedule_.in_block_bytes};
    return prepared_->Prepare(image, FirstRow(task), LastRow(task),
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
    const int64_t row_weights = RowWeights(schedule_, chunk, pass.block_channels);
    const int64_t tail_row_weights = RowWeights(schedule_, chunk, pass.tail_channels);
    const int64_t block = schedule_.in.BlockFor(w.ic);

    RowArgs row_args;
    row_args.source = BytesPast(rows.data, in_channel / block * rows.block_bytes +
                                               in_channel % block * schedule_.config.in_bytes() +
                                               (in_row - rows.first_row) * schedule_.in_row_bytes);
    const int64_t words = packed_.offsets[task.chunk * schedule_.passes.size() + pass_index] +
                          first * (pass.blocks > 0 ? row_weights : tail_row_weights);
    const int64_t word_bytes = schedule_.config.weight_word_bytes();
    row_args.weights = BytesPast(packed_.weights.floats(), words * word_bytes);
    row_args.output = BytesPast(args.output.image<float>(task.image), out_offset);
    if (w.post.sum) {
      row_args.residual = BytesPast(args.inputs[1].image<float>(task.image), out_offset);
    }
    row_args.bias = packed_.bias.floats() + packed_.bias_offsets[task.chunk];
    row_args.kernel_rows = last - first;
    row_args.next_block = rows.block_bytes - (last - first) * (w.dh + 1) * schedule_.in_row_bytes;
    row_args.skipped_weights = (w.kh - (last - first)) * row_weights * word_bytes;
    row_args.tail_weights = first * (tail_row_weights - row_weights) * word_bytes;
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
