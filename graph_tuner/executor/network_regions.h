// A compiled network's regions: what its steps read and compute of rows, and so how each region runs. It
// needs nothing of what makes plans and programs, since whoever loads a compiled network does the same.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graph_tuner/executor/compiled_network.h"
#include "graph_tuner/executor/neighbour_waits.h"
#include "layouts/base/row_window.h"
#include "ops/conv/workload.h"

namespace tilesmith {

// Those of a convolution's input, and of what is fused in front of it.
RowWindows WindowsOf(const ConvWorkload& workload);

// Of what a step reads, the rows that it reads for rows of its result; nullopt where that may be any. `conv`
// and `op` are what it computes: one of them, or neither where it moves a tensor.
std::optional<RowWindows> RowsReadOf(const Program& program, const Step& step, size_t slot,
                                     const ConvWorkload* conv, const Op* op);

// What each step touches, given program, recipes and kernels; nothing of one without a kernel.
std::vector<StepTouch> TouchesOf(const CompiledNetwork& network);

// What the program's regions are, given all but `regions`, of which kernels only theirs count, and TouchesOf.
// Throws Error(kUsage), "plan: region 2: ...", for steps that cannot be one.
std::vector<ScheduledRegion> CompileRegions(const CompiledNetwork& network,
                                            std::span<const StepTouch> touches);
// Of a region of those, for all threads.
int64_t RegionScratchBytes(const CompiledNetwork& network, size_t region);

}  // namespace tilesmith
