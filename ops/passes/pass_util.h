// What passes share.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ops/conv/workload.h"
#include "ops/dense/gemm.h"
#include "ops/elementwise/kinds.h"
#include "ops/graph/graph.h"

namespace tilesmith {

// The workload of a convolution that reads the tensor as its data and nowhere else, or null.
const ConvWorkload* ConvReading(const Graph& graph, Graph::NodeId consumer, Graph::NodeId tensor);
// Whether the node is a BinaryOp of this kind with two inputs.
bool IsBinary(const Graph& graph, Graph::NodeId id, BinaryKind kind);
// The value of all, when there is but one.
std::optional<float> Common(const std::vector<float>& values);

// Whether `id` feeds exactly one input of one node and is no output of the graph.
bool UsedOnce(const Graph& graph, Graph::NodeId id);

// Merges nodes into their producers. For each node with one input whose producer is used nowhere else,
// `fuse(producer, consumer, shape)` returns one op that computes both from the producer's inputs, or null;
// `shape` is that of the producer's output. Chains fuse from the front, each time with the op so far.
using FusePair = std::function<OpPtr(const Op& producer, const Op& consumer, const Shape& shape)>;
Graph FuseIntoProducers(const Graph& graph, const FusePair& fuse);

// nullopt where no workload can state it: of no rows, or of none or too many channels. `shape` is that of the
// output.
std::optional<ConvWorkload> DenseWorkload(const GemmOp& gemm, const Shape& shape);

struct DenseNode {
  std::string name;
  Shape shape;          // of its output
  bool output = false;  // whose name stays with the last node, any other with the convolution
  ConvWorkload workload;
};
// Adds the convolution `conv` of these inputs, of any types, and the views around it; the last of them.
Graph::NodeId AddDense(Graph& result, const DenseNode& dense, OpPtr conv,
                       const std::vector<Graph::NodeId>& inputs);

}  // namespace tilesmith
