// Which steps a thread may begin once the threads beside it have done the step before, instead of all of
// them.
//
// Then threads that are d apart may be d steps apart. That is right for a step if, of the steps that a thread
// d away may still be in, none writes what this thread reads or writes, and none reads what it writes: chains
// of layers dealt by rows, whose halo reaches no further than the thread beside, in buffers whose parts lie
// where the same threads' parts lay before. Everything else waits for all. Source: original.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graph_tuner/executor/memory_planner.h"
#include "graph_tuner/executor/placement.h"
#include "graph_tuner/executor/program.h"
#include "layouts/base/row_window.h"
#include "layouts/base/split.h"
#include "layouts/layout.h"

namespace tilesmith {

// What a step touches. Of a step of several stages the first one reads, and the last one reads and writes.
struct StepTouch {
  int stages = 1;
  TaskGrid writes;                               // of the last stage
  std::vector<std::optional<RowWindows>> reads;  // by input; nothing: all of it, or nobody can say
  int64_t scratch_bytes = 0;
};

// Images and rows of a tensor, all of its channels.
struct TensorPart {
  int64_t first_image = 0, last_image = 0, first_row = 0, last_row = 0;
  bool empty() const { return first_image >= last_image || first_row >= last_row; }
};
// What a thread's share of the tasks lies in; nothing where nobody can say.
std::optional<TensorPart> PartWritten(const TaskGrid& grid, Split split, int thread, int threads,
                                      const Shape& shape);
// What of a tensor of `height` rows is read for it.
TensorPart PartRead(const RowWindows& windows, TensorPart written, int64_t height);

// The result says for each step whether it may. `memory`: of the buffers, then of each step's scratch
// (CompiledNetwork).
std::vector<bool> NeighbourWaits(const Program& program, const std::vector<Place>& places,
                                 const MemoryPlan& memory, std::span<const StepTouch> touches, int threads);

}  // namespace tilesmith
