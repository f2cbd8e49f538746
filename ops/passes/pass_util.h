// What passes share.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ops/conv/workload.h"
#include "ops/elementwise/kinds.h"
#include "ops/graph/graph.h"

namespace tilesmith {

// The op of a node when it is a T, or null.
template <typename T>
const T* OpAs(const Graph& graph, Graph::NodeId id) {
  return dynamic_cast<const T*>(graph.node(id).op.get());
}

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

}  // namespace tilesmith
