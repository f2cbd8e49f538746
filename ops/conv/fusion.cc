#include "ops/conv/fusion.h"

#include <algorithm>
#include <optional>

#include "ops/conv/conv.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

// What the conv's workload becomes with `first` computed in front of it.
std::optional<ConvWorkload> FusedWorkload(const Op& first, const ConvWorkload& main) {
  ConvWorkload fused = main;
  if (const auto* conv = dynamic_cast<const ConvOp*>(&first)) {
    if (conv->workload().post.sum) return std::nullopt;
    fused.before = {conv->workload()};
  } else if (const auto* scale_shift = dynamic_cast<const ScaleShiftOp*>(&first)) {
    fused.pre = {true, scale_shift->activation()};
  } else if (const auto* activation = dynamic_cast<const ActivationOp*>(&first)) {
    fused.pre = {false, activation->activation()};
  }
  if (!fused.fused() || !fused.pre.activation.fusable()) return std::nullopt;
  return fused;
}

}  // namespace

std::vector<FusablePair> FusablePairs(const Graph& graph) {
  std::vector<FusablePair> pairs;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const auto* conv = dynamic_cast<const ConvOp*>(graph.node(id).op.get());
    if (conv == nullptr) continue;
    const std::vector<NodeId> inputs = graph.Inputs(id);
    const NodeId first = inputs[0];
    const bool only_use = graph.Consumers(first).size() == 1 && !graph.IsOutput(first) &&
                          std::count(inputs.begin(), inputs.end(), first) == 1;
    if (!only_use) continue;
    if (auto workload = FusedWorkload(*graph.node(first).op, conv->workload())) {
      pairs.push_back({first, id, std::move(*workload)});
    }
  }
  return pairs;
}

}  // namespace tilesmith
