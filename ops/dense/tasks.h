// Which nodes of a network are tasks: convs, of bytes too, dense layers among them (LowerDense), and products
// of matrices that the network computes both of; and which nodes may be computed inside the conv that reads
// them, as a fused workload (workload.h). Whether that pays is not decided here: it is an alternative that is
// tuned and priced like any other.
#pragma once

#include <optional>
#include <vector>

#include "ops/conv/workload.h"
#include "ops/dense/matmul.h"
#include "ops/graph/graph.h"

namespace tilesmith {

// The product's workload; nullopt where there is nothing to multiply, or more than a workload may be.
std::optional<ConvWorkload> ProductOf(const MatMulOp& op, std::span<const Shape> inputs);

// The workload of a node that is a conv or a product, without what may be fused in front of it; else nullopt.
std::optional<ConvWorkload> TaskOf(const Graph& graph, Graph::NodeId id);

struct FusablePair {
  Graph::NodeId first = 0;  // a conv without residual, a scale and shift, or an activation
  Graph::NodeId conv = 0;   // its only reader
  ConvWorkload workload;    // of both together
};

// All of them, by the id of the conv; a conv in the middle of three is in two. The first node's tensor is no
// output of the network and is read once, as the conv's data.
std::vector<FusablePair> FusablePairs(const Graph& graph);

}  // namespace tilesmith
