// Regions: steps of a program that are computed depth first, band by band, so that the tensors between them
// never exist whole.
//
// The images of a region are cut into segments of rows, one for each thread. A thread walks down its segment:
// for each band of rows of the region's last step it computes, step after step, what that needs and is not
// there yet. A tensor that nobody else reads is kept in a rolling buffer of the thread, as many rows of it as
// windows of steps behind it still reach back to. Where segments meet, rows that both need are computed by
// both. A kernel is given the buffer as if all of the tensor lay around it: row r is where it would be if the
// image began so many rows in front of the buffer's first one, and blocks of channels are nearer to each
// other by what of each is not there (InputView::block_shift). That needs a kernel of one stage whose tasks
// are rows, and, where there are several blocks, one that takes such views.
//
// A region changes when something is computed and never what: each row is computed by the task that would
// compute it without a region, from the same numbers. Source: original; for the idea see Mei et al.,
// "DeFiNES" (2023), Alwani et al., "Fused-layer CNN accelerators" (2016).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "layouts/base/kernel.h"
#include "layouts/base/row_window.h"
#include "layouts/base/stop_flag.h"
#include "templates/device/device.h"

namespace tilesmith {

// What a schedule must know of a step of a region.
struct RegionStep {
  // What it reads of the result of an earlier step of the region, by that step's number in the region.
  struct Read {
    int step = 0;
    size_t slot = 0;
    RowWindows rows;
  };
  TaskGrid grid;  // of its only stage
  int64_t images = 1, height = 1;
  int64_t row_bytes = 0;      // of a block of channels of its result
  int64_t blocks = 1;         // of those
  bool shifts_blocks = true;  // its kernel takes views of several blocks that are not all there
  bool kept = false;          // the result is read behind the region, too, and so exists whole
  std::vector<Read> reads;
};

// Why steps cannot be a region: "step 3 computes no rows of its result by themselves". Empty when they can.
std::string WhyNoRegion(std::span<const RegionStep> steps);

// What one thread does for its segment of an image, one thing after the other.
struct RegionAction {
  enum class Does : uint8_t {
    kCompute,  // parts [first, last) of the step's rows (TaskGrid)
    kMove,     // rows [first, last) of its result to the beginning of its buffer, in each block
    kKeep,     // rows [first, last) from its buffer to where the result exists whole
  };
  Does does = Does::kCompute;
  int step = 0;
  int64_t first = 0, last = 0;
  bool operator==(const RegionAction&) const = default;
};

struct RegionSchedule {
  int64_t images = 1;
  int segments = 1;
  std::vector<std::vector<RegionAction>> actions;  // by segment
  // Rows of each step's buffer; 0: the result is written where it exists whole.
  std::vector<int64_t> buffer_rows;
  // Where the buffers lie in a thread's memory, and the bytes of that.
  std::vector<int64_t> buffer_offsets;
  int64_t buffer_bytes = 0;
  // Rows that segments compute, and those of the results: what is more is computed by two.
  int64_t computed_rows = 0, result_rows = 0;
  std::vector<int64_t> step_rows;  // of those computed, by step
};

// Of bands of `band_rows` rows of the last step's result. Where there are several images for each thread, a
// segment is whole images. Precondition: WhyNoRegion says nothing.
RegionSchedule ScheduleRegion(std::span<const RegionStep> steps, int64_t band_rows, int threads);

// Runs a schedule as one kernel, whose tasks are segments of images. `launches` are those of its steps, whose
// pointers may change between two runs; their kernels' scratch is the thread's own, ScratchBytes of this
// kernel are for all. Both outlive it. Not for two runs at the same time.
class RegionKernel : public Kernel {
 public:
  RegionKernel(const RegionSchedule& schedule, std::span<const RegionStep> steps,
               std::span<const Launch> launches, int threads, const StopFlag* stop);
  ~RegionKernel() override;

  int64_t Tasks(int stage) const override;
  void Run(const KernelArgs& args, int stage, TaskRange range) const override;
  int64_t ScratchBytes(int threads) const override;

  // From now on, or no longer, thread 0 adds the seconds that each step takes to these.
  void Clock(std::span<double> seconds);

 private:
  struct Thread;
  void Do(const RegionAction& action, int64_t image, Thread& thread) const;
  void Compute(size_t step, RowRange parts, int64_t image, Thread& thread) const;
  // The step's buffer begins with this row from now on.
  void Rebase(size_t step, int64_t row, Thread& thread) const;

  const RegionSchedule& schedule_;
  const std::span<const RegionStep> steps_;
  const std::span<const Launch> launches_;
  const StopFlag* const stop_;
  int64_t thread_bytes_ = 0;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::span<double> seconds_;
};

// The bytes of a region's scratch: buffers and what its kernels need, of all threads.
int64_t RegionScratchBytes(const RegionSchedule& schedule, std::span<const Kernel* const> kernels,
                           int threads);

}  // namespace tilesmith
