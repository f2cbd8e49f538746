#include "ops/dense/tasks.h"

#include <algorithm>

#include "layouts/base/error.h"
#include "ops/conv/conv.h"

namespace tilesmith {
namespace {

// Whether the rows of what is seen lie side by side, and not its columns; of a vector, no.
bool IsTransposed(const Arrangement& arrangement, const Shape& tensor) {
  const std::vector<int64_t> strides = StridesOf(arrangement, tensor).strides;
  const size_t rank = strides.size();
  return rank >= 2 && strides[rank - 1] != 1 && strides[rank - 2] == 1;
}

}  // namespace

std::optional<ConvWorkload> ProductOf(const MatMulOp& op, std::span<const Shape> inputs) {
  const MatMulParams& params = op.params();
  const MatMulShapes s = ShapesOf(params, inputs);
  ConvWorkload workload =
      ProductWorkload({ElementCount(s.batch), s.m, s.n, s.k},
                      {IsTransposed(params.a, inputs[0]), IsTransposed(params.b, inputs[1])});
  try {
    ValidateWorkload(workload);
  } catch (const Error&) {
    return std::nullopt;
  }
  return workload;
}

std::optional<ConvWorkload> TaskOf(const Graph& graph, Graph::NodeId id) {
  if (const auto* conv = graph.As<ConvolutionOp>(id)) return conv->workload();
  if (const auto* product = graph.As<MatMulOp>(id)) return ProductOf(*product, graph.InputShapes(id));
  return std::nullopt;
}
namespace {

using NodeId = Graph::NodeId;

// What the conv's workload becomes with `first` computed in front of it.
std::optional<ConvWorkload> FusedWorkload(const Graph& graph, NodeId first, ConvWorkload main) {
  if (const auto* conv = graph.As<ConvOp>(first)) {
    if (conv->workload().post.sum) return std::nullopt;
    main.before = {conv->workload()};
  } else {
    main.pre = graph.node(first).op->AsInputOps().value_or(InputOps());
  }
  if (!main.fused() || !main.pre.activation.fusable()) return std::nullopt;
  return main;
}

}  // namespace

std::vector<FusablePair> FusablePairs(const Graph& graph) {
  std::vector<FusablePair> pairs;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const auto* conv = graph.As<ConvOp>(id);
    if (conv == nullptr) continue;
    const std::vector<NodeId> inputs = graph.Inputs(id);
    const NodeId first = inputs[0];
    const bool only_use = graph.Consumers(first).size() == 1 && !graph.IsOutput(first) &&
                          std::count(inputs.begin(), inputs.end(), first) == 1;
    if (!only_use) continue;
    if (auto workload = FusedWorkload(graph, first, conv->workload())) {
      pairs.push_back({first, id, std::move(*workload)});
    }
  }
  return pairs;
}

}  // namespace tilesmith
