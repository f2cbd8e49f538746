// Which nodes of a network are tasks: convs, of bytes too, dense layers among them (LowerDense), and products
// of matrices that the network computes both of.
#pragma once

#include <optional>

#include "ops/conv/workload.h"
#include "ops/dense/matmul.h"
#include "ops/graph/graph.h"

namespace tilesmith {

// The product's workload; nullopt where there is nothing to multiply, or more than a workload may be.
std::optional<ConvWorkload> ProductOf(const MatMulOp& op, std::span<const Shape> inputs);

// The workload of a node that is a conv or a product, without what may be fused in front of it; else nullopt.
std::optional<ConvWorkload> TaskOf(const Graph& graph, Graph::NodeId id);

}  // namespace tilesmith
