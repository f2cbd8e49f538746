// The oracle executor: a network computed node by node through Op::Reference.
#pragma once

#include <span>
#include <vector>

#include "layouts/base/stop_flag.h"
#include "ops/graph/graph.h"

namespace tilesmith {

// `inputs` in the order of graph.GraphInputs(), plain layout; the result is in the order of graph.outputs().
// Intermediate tensors are freed after their last use. Slow, and deterministic: no kernel of ours takes part.
// Throws Error(kUsage) when the number, the shape or the type of an input is not the graph's, and
// Error(kInterrupted) at the next node once `stop` is set. Thread-safe.
std::vector<Tensor> RunReference(const Graph& graph, std::span<const Tensor* const> inputs,
                                 const StopFlag* stop = nullptr);

}  // namespace tilesmith
