#include <cmath>

#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

// The product of `source` with this node is factor * kind(source).
struct Gate {
  NodeId source = 0;
  ActivationKind kind = ActivationKind::kNone;
  double factor = 1;
};

bool IsUniform(const ScaleShiftOp* op, float scale, float shift) {
  return op != nullptr && op->activation().kind == ActivationKind::kNone && Common(op->scale()) == scale &&
         Common(op->shift()) == shift;
}

// Exporters round 1/6 to some seven digits.
bool IsHardSwishGate(const Activation& gate) {
  return gate.kind == ActivationKind::kHardSigmoid && std::abs(gate.alpha - 1.0f / 6) <= 0x1p-23f &&
         gate.beta == 0.5f;
}

// For clip(x + 3, 0, 6), which is six times the gate of HardSwish, what x is.
std::optional<NodeId> SourceOfClip(const Graph& graph, NodeId id) {
  const ActivationOp* clip = OpAs<ActivationOp>(graph, id);
  if (clip == nullptr || clip->activation() != Activation{ActivationKind::kClip, 0, 6}) return std::nullopt;
  const NodeId sum = graph.Inputs(id)[0];
  if (!IsUniform(OpAs<ScaleShiftOp>(graph, sum), 1, 3)) return std::nullopt;
  return graph.Inputs(sum)[0];
}

std::optional<Gate> GateOf(const Graph& graph, NodeId id) {
  double factor = 1;
  if (const ScaleShiftOp* scale = OpAs<ScaleShiftOp>(graph, id)) {
    factor = Common(scale->scale()).value_or(0);
    if (!IsUniform(scale, static_cast<float>(factor), 0)) return std::nullopt;
    id = graph.Inputs(id)[0];
  }
  if (const auto source = SourceOfClip(graph, id)) {
    return Gate{*source, ActivationKind::kHardSwish, 6 * factor};
  }
  const ActivationOp* op = OpAs<ActivationOp>(graph, id);
  if (op == nullptr) return std::nullopt;
  if (op->activation().kind == ActivationKind::kSigmoid) {
    return Gate{graph.Inputs(id)[0], ActivationKind::kSilu, factor};
  }
  if (IsHardSwishGate(op->activation())) {
    return Gate{graph.Inputs(id)[0], ActivationKind::kHardSwish, factor};
  }
  return std::nullopt;
}

// A product of a tensor and its own gate, the tensor being input `slot`.
struct GatedProduct {
  Gate gate;
  size_t slot = 0;
};

std::optional<GatedProduct> GatedProductOf(const Graph& graph, NodeId id) {
  const BinaryOp* product = OpAs<BinaryOp>(graph, id);
  if (product == nullptr || product->kind() != BinaryKind::kMul) return std::nullopt;
  if (graph.node(id).shape.size() < 2) return std::nullopt;
  const std::vector<NodeId> inputs = graph.Inputs(id);
  for (const size_t slot : {size_t{0}, size_t{1}}) {
    const std::optional<Gate> gate = GateOf(graph, inputs[1 - slot]);
    if (gate && gate->source == inputs[slot]) return GatedProduct{*gate, slot};
  }
  return std::nullopt;
}

}  // namespace

Graph RecognizeGates(const Graph& graph) {
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        const std::optional<GatedProduct> product = GatedProductOf(graph, id);
        if (!product) return std::nullopt;
        const Node& node = graph.node(id);
        const auto factor = static_cast<float>(product->gate.factor);
        auto activation = std::make_shared<ActivationOp>(Activation{product->gate.kind});
        const NodeId x = inputs[product->slot];
        if (factor == 1) return result.Add(node.name, std::move(activation), {x});
        const size_t channels = node.shape[1];
        auto scale = std::make_shared<ScaleShiftOp>(std::vector<float>(channels, factor),
                                                    std::vector<float>(channels, 0.0f));
        return result.Add(node.name, std::move(scale),
                          {result.Add(node.name + ".gated", std::move(activation), {x})});
      });
}

}  // namespace tilesmith
