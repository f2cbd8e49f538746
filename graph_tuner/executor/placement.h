// Placement: which buffers of a program share memory, and for how long each piece of it is in use.
#pragma once

#include <vector>

#include "graph_tuner/executor/memory_planner.h"
#include "graph_tuner/executor/program.h"

namespace tilesmith {

struct Place {
  int root = 0;              // the buffer whose memory this one lies in; itself when it has its own
  int64_t offset = 0;        // in bytes, from the root's start in each image
  int64_t image_stride = 0;  // in bytes: the root's
};

// By buffer. Beside concat slices, a buffer takes the place of the result of the step that reads it last,
// when that step may work in place. Buffers fed by the user or constant are never written; graph outputs are
// their own roots.
std::vector<Place> PlaceBuffers(const Program& program);

// The steps, both included, that run at the same time as this one: itself, or all of its region.
struct StepSpan {
  int first = 0, last = 0;
};
StepSpan SpanOf(const Program& program, int step);

// What each root needs in the arena and from which step to which, by buffer; no bytes for buffers that lie in
// another one or in memory of the user's.
std::vector<BufferRequest> ArenaRequests(const Program& program, const std::vector<Place>& places);

}  // namespace tilesmith
