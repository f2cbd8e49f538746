// Concats without copies: a tensor that is concatenated can be written by its producer straight into the
// result, where its channels are a contiguous run of blocks.
//
// Which concat owns a tensor is decided from the graph alone, so that costs stay pairwise: a tensor belongs
// to the first channel concat that consumes it (lowest node id), in its first slot there. For any other
// concat it is copied. Graph inputs, constants and view outputs own nothing; nor do graph outputs, which lie
// in the caller's memory. Shared by the layout problem (what a concat costs) and the executor (where tensors
// live).
#pragma once

#include <optional>
#include <vector>

#include "ops/graph/graph.h"

namespace tilesmith {

struct ConcatSlice {
  Graph::NodeId concat = 0;
  int slot = 0;
  int64_t channel_offset = 0;  // of this input's first channel in the concat's output
};

// Indexed by node id.
using Slices = std::vector<std::optional<ConcatSlice>>;
Slices ConcatSlices(const Graph& graph);

// Whether every input of the concat starts and (but for the last) ends on a block boundary in `layout`, so
// that inputs are contiguous runs inside each image. Never for NHWC with more than one input of nonzero
// channels.
bool ConcatIsSliceable(const Graph& graph, Graph::NodeId concat, const Layout& layout);

// One input of one node.
struct InputSlot {
  Graph::NodeId consumer = 0;
  size_t slot = 0;
};

// Whether input `slot` of a node that runs in `layout` must be brought into a concat's slice that it does not
// own. `slices` are ConcatSlices(graph).
bool MustFillSlice(const Graph& graph, const Slices& slices, const InputSlot& input, const Layout& layout);

}  // namespace tilesmith
