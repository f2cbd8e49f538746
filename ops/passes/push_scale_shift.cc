#include <algorithm>

#include "ops/conv/conv.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

bool ReadsWithoutPadding(const Graph& graph, NodeId consumer, NodeId tensor) {
  const ConvWorkload* w = ConvReading(graph, consumer, tensor);
  return w != nullptr && std::max({w->ph, w->pw, w->pad_bottom(), w->pad_right()}) <= 0;
}

bool CanBePushed(const Graph& graph, NodeId id) {
  const ScaleShiftOp* op = OpAs<ScaleShiftOp>(graph, id);
  if (op == nullptr || op->activation().kind != ActivationKind::kNone || graph.IsOutput(id)) return false;
  return std::ranges::all_of(graph.Consumers(id),
                             [&](NodeId consumer) { return ReadsWithoutPadding(graph, consumer, id); });
}

// sum w * (s * x + t) = sum (w * s) * x + sum w * t
OpPtr Scaled(const ConvOp& conv, const ScaleShiftOp& op) {
  ConvWorkload workload = conv.workload();
  workload.post.bias = true;
  const int64_t group_in = workload.ic / workload.g, taps = workload.kh * workload.kw;
  auto weights = std::make_shared<Tensor>(workload.weights_shape());
  auto bias = std::make_shared<Tensor>(Shape{workload.oc});
  for (int64_t o = 0; o < workload.oc; ++o) {
    double sum = conv.bias() == nullptr ? 0.0 : conv.bias()->floats()[o];
    const int64_t group = o / (workload.oc / workload.g);
    for (int64_t i = 0; i < group_in * taps; ++i) {
      const int64_t at = o * group_in * taps + i, channel = group * group_in + i / taps;
      const double weight = conv.weights()->floats()[at];
      weights->floats()[at] = static_cast<float>(weight * op.scale()[channel]);
      sum += weight * op.shift()[channel];
    }
    bias->floats()[o] = static_cast<float>(sum);
  }
  return std::make_shared<ConvOp>(workload, std::move(weights), std::move(bias));
}

}  // namespace

Graph PushScaleShift(const Graph& graph) {
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        if (CanBePushed(graph, id)) return inputs[0];
        const ConvOp* conv = OpAs<ConvOp>(graph, id);
        if (conv == nullptr) return std::nullopt;
        const NodeId data = graph.Inputs(id)[0];
        if (!CanBePushed(graph, data)) return std::nullopt;
        return result.Add(graph.node(id).name, Scaled(*conv, *OpAs<ScaleShiftOp>(graph, data)), inputs);
      });
}

}  // namespace tilesmith
