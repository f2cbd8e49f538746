// A compiled network's regions: what its steps read and compute of rows, and so how each region runs. It
// needs nothing of what makes plans and programs, since whoever loads a compiled network does the same.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph_tuner/executor/compiled_network.h"
#include "layouts/base/row_window.h"
#include "ops/conv/workload.h"

namespace tilesmith {

// Those of a convolution's input, and of what is fused in front of it.
RowWindows WindowsOf(const ConvWorkload& workload);

// Of each input of a step the rows that it reads for rows of its result, given program and recipes; nullopt
// where that may be any.
std::vector<std::optional<RowWindows>> RowsReadBy(const CompiledNetwork& network, size_t step);

// What the program's regions are, given all but `regions`. Throws Error(kUsage), "plan: region 2: ...", for
// steps that cannot be one.
std::vector<ScheduledRegion> CompileRegions(const CompiledNetwork& network);
// Of a region of those, for all threads.
int64_t RegionScratchBytes(const CompiledNetwork& network, size_t region);

}  // namespace tilesmith
