#include <algorithm>
#include <cmath>

#include "ops/conv/conv.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/binary.h"
#include "ops/movement/concat.h"
#include "ops/movement/indexing.h"
#include "ops/movement/transpose.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"
#include "ops/pool/pool.h"
#include "ops/pool/quantized_max_pool.h"
#include "ops/quantize/quantize.h"
#include "ops/quantize/quantized_binary.h"
#include "ops/quantize/quantized_conv.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

// How the node quantises or dequantises when it does so with one known scale for bytes, which is positive,
// else null.
template <typename LinearOp>
const Quantization* BytesOf(const Graph& graph, NodeId id) {
  const auto* op = OpAs<LinearOp>(graph, id);
  if (op == nullptr || !op->is_constant()) return nullptr;
  const Quantization& q = op->quantization();
  return q.per_tensor() && IsByte(q.type) && q.scales[0] > 0 ? &q : nullptr;
}

// What stands between integers and integers: a node on reals, and the bounds that activations behind it set.
struct QuantizedNode {
  NodeId core = 0;
  Quantization output;
  StoredRange limits;
};

bool Narrow(const Activation& activation, QuantizedNode& node) {
  const StoredRange range = RangeOf(node.output.type);
  const auto stored = [&](float bound) {
    return QuantizedValue(bound, node.output.scales[0], node.output.zero_points[0], range);
  };
  const bool relu = activation.kind == ActivationKind::kRelu;
  if (!relu && activation.kind != ActivationKind::kClip) return false;
  if (!relu && !(activation.alpha <= activation.beta)) return false;
  node.limits.low = std::max(node.limits.low, stored(relu ? 0.0f : activation.alpha));
  if (!relu) node.limits.high = std::min(node.limits.high, stored(activation.beta));
  return node.limits.low <= node.limits.high;
}

// What the node `id` quantises, when only that reads it.
std::optional<QuantizedNode> QuantizedBy(const Graph& graph, NodeId id) {
  const Quantization* output = BytesOf<QuantizeLinearOp>(graph, id);
  if (output == nullptr) return std::nullopt;
  QuantizedNode result{graph.Inputs(id)[0], *output, RangeOf(output->type)};
  while (UsedOnce(graph, result.core)) {
    const auto* activation = OpAs<ActivationOp>(graph, result.core);
    if (activation == nullptr) return result;
    if (!Narrow(activation->activation(), result)) return std::nullopt;
    result.core = graph.Inputs(result.core)[0];
  }
  return std::nullopt;
}

// Whether sums of scale `input` times those of the weights are what the bias counts in.
bool BiasFits(const QuantizedTensor& bias, const Quantization& input, const Quantization& weights) {
  const std::vector<float>& scales = bias.quantization.scales;
  if (bias.quantization.type != DataType::kI32) return false;
  for (size_t o = 0; o < std::max(scales.size(), weights.scales.size()); ++o) {
    const float scale = scales.size() == 1 ? scales[0] : scales[o];
    const float product = input.scales[0] * (weights.per_tensor() ? weights.scales[0] : weights.scales[o]);
    if (!(std::abs(scale - product) <= 1e-4f * product)) return false;
  }
  return true;
}

OpPtr QuantizedConvOf(const Graph& graph, const QuantizedNode& node) {
  const auto* conv = OpAs<ConvOp>(graph, node.core);
  if (conv == nullptr || conv->stored().weights == nullptr) return nullptr;
  const Quantization* input = BytesOf<DequantizeLinearOp>(graph, graph.Inputs(node.core)[0]);
  const QuantizedTensor& weights = *conv->stored().weights;
  const PostOps post{.bias = conv->bias() != nullptr, .sum = false, .activation = {}};
  if (input == nullptr || !IsByte(weights.quantization.type) || conv->workload().post != post) return nullptr;
  if (!weights.quantization.per_tensor() && weights.quantization.axis != 0) return nullptr;
  const std::shared_ptr<const QuantizedTensor>& bias = conv->stored().bias;
  if (post.bias && (bias == nullptr || !BiasFits(*bias, *input, weights.quantization))) return nullptr;
  try {
    return std::make_shared<QuantizedConvOp>(
        conv->workload(),
        QuantizedConvParams{*input, weights, post.bias ? bias->stored : nullptr, node.output, node.limits});
  } catch (const Error&) {  // its sums would not fit
    return nullptr;
  }
}

OpPtr QuantizedBinaryOf(const Graph& graph, const QuantizedNode& node) {
  const auto* binary = OpAs<BinaryOp>(graph, node.core);
  const bool known =
      binary != nullptr && (binary->kind() == BinaryKind::kAdd || binary->kind() == BinaryKind::kMul);
  const std::vector<Shape> shapes = graph.InputShapes(node.core);
  if (!known || shapes.size() != 2 || shapes[0] != shapes[1]) return nullptr;
  QuantizedBinaryParams params{binary->kind(), {}, {}, node.output, node.limits};
  const std::vector<NodeId> inputs = graph.Inputs(node.core);
  for (Quantization* side : {&params.a, &params.b}) {
    const Quantization* q = BytesOf<DequantizeLinearOp>(graph, inputs[side == &params.a ? 0 : 1]);
    if (q == nullptr || q->type != node.output.type) return nullptr;
    *side = *q;
  }
  return std::make_shared<QuantizedBinaryOp>(std::move(params));
}

// An op that moves elements without looking at them, or takes the largest, where scales stay what they are.
OpPtr MoverOf(const Graph& graph, const QuantizedNode& node) {
  for (const NodeId input : graph.Inputs(node.core)) {
    const Quantization* q = BytesOf<DequantizeLinearOp>(graph, input);
    if (q == nullptr || *q != node.output) return nullptr;
  }
  const StoredRange range = RangeOf(node.output.type);
  if (node.limits.low != range.low || node.limits.high != range.high) return nullptr;
  const OpPtr& op = graph.node(node.core).op;
  if (const auto* pool = OpAs<PoolOp>(graph, node.core)) {
    if (pool->window().kind != PoolKind::kMax) return nullptr;
    return std::make_shared<QuantizedMaxPoolOp>(pool->window());
  }
  const bool moves = op->IsView() || OpAs<ConcatOp>(graph, node.core) != nullptr ||
                     OpAs<SliceOp>(graph, node.core) != nullptr ||
                     OpAs<TransposeOp>(graph, node.core) != nullptr;
  return moves ? op : nullptr;
}

}  // namespace

Graph FuseQuantized(const Graph& graph) {
  std::vector<std::vector<NodeId>> mapped_inputs(graph.size());
  return DropDeadNodes(RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        mapped_inputs[id] = inputs;
        const std::optional<QuantizedNode> node = QuantizedBy(graph, id);
        if (!node) return std::nullopt;
        OpPtr op = QuantizedConvOf(graph, *node);
        if (op == nullptr) op = QuantizedBinaryOf(graph, *node);
        if (op == nullptr) op = MoverOf(graph, *node);
        if (op == nullptr) return std::nullopt;
        std::vector<NodeId> sources;  // in front of what dequantises them
        for (const NodeId input : graph.Inputs(node->core)) sources.push_back(mapped_inputs[input][0]);
        return result.Add(graph.node(id).name, std::move(op), sources);
      }));
}

}  // namespace tilesmith
