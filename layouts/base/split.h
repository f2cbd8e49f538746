// Splits: how the tasks of a stage are dealt to the threads of a team, and so who owns which part of a
// tensor.
//
// Threads keep what they wrote in their own caches. A layer that deals its work as the one before did reads
// mostly its own; where the split changes, half of a tensor or all of it moves from core to core, which costs
// the more the farther apart the cores are. So tasks are not merely many: they form a grid over the output,
// images x parts of channels x parts of rows, and a split cuts that grid along one of its axes. It is static:
// thread t always has share t, and a boundary between rows is at the same row in every tensor of one height.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tilesmith {

struct TaskRange {
  int64_t begin = 0;
  int64_t end = 0;
  int thread = 0;  // which thread of the team runs it, for per-thread parts of the scratch
};

// Tasks [begin, end) of `thread` when `tasks` are split evenly and contiguously over `threads`.
TaskRange ShareOf(int64_t tasks, int thread, int threads);

enum class Split : uint8_t {
  kEven,      // the tasks in their own order, in even contiguous shares: nobody can say who owns what
  kRows,      // output rows
  kChannels,  // output channels
  kImages,    // of the batch
  kOne,       // thread 0 computes all
};
inline constexpr Split kSplits[] = {Split::kEven, Split::kRows, Split::kChannels, Split::kImages,
                                    Split::kOne};

// "even", "rows", "channels", "images", "one"; none for other names.
std::string_view SplitName(Split split);
std::optional<Split> SplitOfName(std::string_view name);

// The tasks of a stage, numbered image by image; within an image the parts of rows of each part of channels
// follow each other or, with channels_inner, the parts of channels of each part of rows.
struct TaskGrid {
  int64_t images = 1, channels = 1, rows = 1;  // parts of each
  bool channels_inner = false;
  // Part r of rows is units [r * part_units, (r + 1) * part_units) of `height` rows of `row_units` units
  // each; units are rows or, where images are recut, pixels. No height: the tasks have no place in the
  // output, and all splits but kEven and kOne are out.
  int64_t height = 0, row_units = 1, part_units = 1;
  bool exact = true;  // else a part begins and ends only about there
  // Rows that are written together: a part begins and ends in a group of so many.
  int64_t row_group = 1;

  static TaskGrid List(int64_t tasks) { return {.rows = tasks}; }
  int64_t tasks() const { return images * channels * rows; }
  // Whether tasks are rows of a result of so many images and rows, or groups of rows.
  bool GivesRows(int64_t of_images, int64_t of_height) const;
  // Whether there is more than one part to deal.
  bool Can(Split split) const;
};

// The row at which share `thread` begins in every tensor of `height` rows: their part, rounded.
inline int64_t FirstRowOf(int64_t height, int thread, int threads) {
  return (2 * height * thread + threads) / (int64_t{2} * threads);
}

// Parts of rows of share `thread` where rows are split.
TaskRange RowPartsOf(const TaskGrid& grid, int thread, int threads);

// What a thread computes of a stage: a box of the grid, and of the box's tasks, in their order, [begin, end).
class Share {
 public:
  // A split that the grid cannot do is kEven.
  Share(const TaskGrid& grid, Split split, int thread, int threads);

  int64_t tasks() const { return end_ - begin_; }
  // Calls run(TaskRange) for tasks [first, last) of the share, as few ranges of adjacent ones as make them,
  // for thread `thread`, which need not be the share's.
  template <typename Run>
  void ForEachRange(int64_t first, int64_t last, int thread, const Run& run) const;

 private:
  struct Axis {
    int64_t begin = 0, end = 0, all = 0;
    int64_t size() const { return end - begin; }
    bool whole() const { return size() == all; }
  };

  Axis images_, outer_, inner_;
  int64_t begin_ = 0, end_ = 0;
};

template <typename Run>
void Share::ForEachRange(int64_t first, int64_t last, int thread, const Run& run) const {
  const int64_t inner = inner_.size(), outer = outer_.size();
  last = std::min(begin_ + last, end_);
  for (int64_t i = begin_ + first; i < last;) {
    const int64_t at = i % inner, line = i / inner % outer, image = i / inner / outer;
    int64_t run_tasks = inner - at;
    if (inner_.whole()) run_tasks += (outer - 1 - line) * inner;
    if (inner_.whole() && outer_.whole()) run_tasks = last - i;
    run_tasks = std::min(run_tasks, last - i);
    const int64_t task =
        ((images_.begin + image) * outer_.all + outer_.begin + line) * inner_.all + inner_.begin + at;
    run(TaskRange{task, task + run_tasks, thread});
    i += run_tasks;
  }
}

}  // namespace tilesmith
