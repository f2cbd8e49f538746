#include <algorithm>
#include <cmath>

#include "ops/conv/conv.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/movement/concat.h"
#include "ops/movement/indexing.h"
#include "ops/movement/transpose.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"
#include "ops/pool/pool.h"
#include "ops/pool/quantized_pool.h"
#include "ops/quantize/byte_table.h"
#include "ops/quantize/quantize.h"
#include "ops/quantize/quantized_binary.h"
#include "ops/quantize/quantized_conv.h"
#include "ops/quantize/quantized_scale_shift.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

// How the node quantises or dequantises when it does so with one known scale for bytes, which is positive,
// else null.
template <typename LinearOp>
const Quantization* BytesOf(const Graph& graph, NodeId id) {
  const auto* op = graph.As<LinearOp>(id);
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

// Whether all that the activation does is to set bounds, which then are the node's too.
bool Narrow(const Activation& activation, QuantizedNode& node) {
  const StoredRange range = RangeOf(node.output.type);
  const auto stored = [&](float bound) {
    return QuantizedValue(bound, node.output.scales[0], node.output.zero_points[0], range);
  };
  const bool relu = activation.kind == ActivationKind::kRelu;
  if (!relu && activation.kind != ActivationKind::kClip) return false;
  if (!relu && !(activation.alpha <= activation.beta)) return false;
  StoredRange limits = node.limits;
  limits.low = std::max(limits.low, stored(relu ? 0.0f : activation.alpha));
  if (!relu) limits.high = std::min(limits.high, stored(activation.beta));
  if (limits.low > limits.high) return false;
  node.limits = limits;
  return true;
}

// What the node `id` quantises, when only that reads it.
std::optional<QuantizedNode> QuantizedBy(const Graph& graph, NodeId id) {
  const Quantization* output = BytesOf<QuantizeLinearOp>(graph, id);
  if (output == nullptr) return std::nullopt;
  QuantizedNode result{graph.Inputs(id)[0], *output, RangeOf(output->type)};
  while (UsedOnce(graph, result.core)) {
    const auto* activation = graph.As<ActivationOp>(result.core);
    if (activation == nullptr || !Narrow(activation->activation(), result)) return result;
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

// The convolution that the node is, whose weights and bias are bytes.
struct StoredConv {
  ConvWorkload workload;
  StoredWeights stored;
  bool dense = false;
};

std::optional<StoredConv> StoredConvAt(const Graph& graph, NodeId id) {
  std::optional<StoredConv> result;
  if (const auto* conv = graph.As<ConvOp>(id)) {
    result = {conv->workload(), conv->stored()};
  } else if (const auto* gemm = graph.As<GemmOp>(id)) {
    const std::optional<ConvWorkload> w = DenseWorkload(*gemm, graph.node(id).shape);
    if (w) result = {*w, gemm->stored(), true};
  }
  return result && result->stored.weights != nullptr ? result : std::nullopt;
}

// `output` is of bytes, within `limits`, or says that reals are stored.
OpPtr QuantizedConvOf(const Graph& graph, NodeId id, const Quantization& output, const StoredRange& limits) {
  const std::optional<StoredConv> conv = StoredConvAt(graph, id);
  if (!conv) return nullptr;
  const Quantization* input = BytesOf<DequantizeLinearOp>(graph, graph.Inputs(id)[0]);
  const QuantizedTensor& weights = *conv->stored.weights;
  const std::shared_ptr<const QuantizedTensor>& bias = conv->stored.bias;
  const PostOps post{.bias = conv->workload.post.bias, .sum = false, .activation = {}};
  if (input == nullptr || !IsByte(weights.quantization.type) || conv->workload.post != post) return nullptr;
  if (!weights.quantization.per_tensor() && weights.quantization.axis != 0) return nullptr;
  if (post.bias && (bias == nullptr || !BiasFits(*bias, *input, weights.quantization))) return nullptr;
  try {
    return std::make_shared<QuantizedConvOp>(
        conv->workload,
        QuantizedConvParams{*input, weights, post.bias ? bias->stored : nullptr, output, limits});
  } catch (const Error&) {  // its sums would not fit
    return nullptr;
  }
}

NodeId AddConv(const Graph& graph, NodeId core, NodeId named, OpPtr op, NodeId source, Graph& result) {
  const Node& node = graph.node(named);
  if (graph.As<GemmOp>(core) == nullptr) return result.Add(node.name, std::move(op), {source});
  const ConvWorkload& w = dynamic_cast<const QuantizedConvOp&>(*op).workload();
  return AddDense(result, {node.name, node.shape, graph.IsOutput(named), w}, std::move(op), {source});
}

OpPtr QuantizedBinaryOf(const Graph& graph, const QuantizedNode& node) {
  const auto* binary = graph.As<BinaryOp>(node.core);
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

bool WholeRange(const QuantizedNode& node) {
  const StoredRange range = RangeOf(node.output.type);
  return node.limits.low == range.low && node.limits.high == range.high;
}

// The mean over windows, or over the whole image.
OpPtr QuantizedAveragePoolOf(const Graph& graph, const QuantizedNode& node) {
  std::optional<PoolWindow> window;
  if (const auto* pool = graph.As<PoolOp>(node.core)) window = pool->window();
  if (const auto* global = graph.As<GlobalPoolOp>(node.core);
      global != nullptr && global->keep_dims() && graph.InputShapes(node.core)[0].size() == 4) {
    const Shape shape = graph.InputShapes(node.core)[0];
    window = PoolWindow{.kind = global->kind(), .kh = shape[2], .kw = shape[3]};
  }
  if (!window || window->kind != PoolKind::kAverage) return nullptr;
  const Quantization* input = BytesOf<DequantizeLinearOp>(graph, graph.Inputs(node.core)[0]);
  if (input == nullptr || input->type != node.output.type) return nullptr;
  if (window->kh > QuantizedAveragePoolOp::kMaxTaps / window->kw) return nullptr;
  return std::make_shared<QuantizedAveragePoolOp>(
      QuantizedAveragePoolParams{*window, *input, node.output, node.limits});
}

// A batch normalization.
OpPtr QuantizedScaleShiftOf(const Graph& graph, const QuantizedNode& node,
                            const std::optional<Quantization>& input) {
  const auto* op = graph.As<ScaleShiftOp>(node.core);
  if (op == nullptr || (input && input->type != node.output.type)) return nullptr;
  QuantizedNode clamped = node;
  if (op->activation().kind != ActivationKind::kNone && !Narrow(op->activation(), clamped)) return nullptr;
  QuantizedScaleShiftParams params{op->scale(), op->shift(), input, clamped.output, clamped.limits};
  if (!QuantizedScaleShiftOp::HasFiniteTerms(params)) return nullptr;
  return std::make_shared<QuantizedScaleShiftOp>(std::move(params));
}

OpPtr ScaleShiftOfBytes(const Graph& graph, const QuantizedNode& node) {
  if (graph.As<ScaleShiftOp>(node.core) == nullptr) return nullptr;
  const Quantization* input = BytesOf<DequantizeLinearOp>(graph, graph.Inputs(node.core)[0]);
  return input == nullptr ? nullptr : QuantizedScaleShiftOf(graph, node, *input);
}

// A function of one number, or none, where scales differ.
OpPtr ByteTableOf(const Graph& graph, NodeId from, const Activation& function, const QuantizedNode& node) {
  const Quantization* input = BytesOf<DequantizeLinearOp>(graph, from);
  if (input == nullptr) return nullptr;
  return std::make_shared<ByteTableOp>(function, *input, node.output, node.limits);
}

OpPtr FunctionOf(const Graph& graph, const QuantizedNode& node) {
  const auto* activation = graph.As<ActivationOp>(node.core);
  if (activation == nullptr) return nullptr;
  return ByteTableOf(graph, graph.Inputs(node.core)[0], activation->activation(), node);
}

// An op that moves elements without looking at them, or takes the largest, where scales stay what they are.
OpPtr MoverOf(const Graph& graph, const QuantizedNode& node) {
  for (const NodeId input : graph.Inputs(node.core)) {
    const Quantization* q = BytesOf<DequantizeLinearOp>(graph, input);
    if (q == nullptr || *q != node.output) return nullptr;
  }
  if (!WholeRange(node)) return nullptr;
  const OpPtr& op = graph.node(node.core).op;
  if (const auto* pool = graph.As<PoolOp>(node.core)) {
    if (pool->window().kind != PoolKind::kMax) return nullptr;
    return std::make_shared<QuantizedMaxPoolOp>(pool->window());
  }
  const bool moves = op->IsView() || graph.As<ConcatOp>(node.core) != nullptr ||
                     graph.As<SliceOp>(node.core) != nullptr || graph.As<TransposeOp>(node.core) != nullptr;
  return moves ? op : nullptr;
}

// What is in front of the nodes that dequantise; for a Concat, brought to its output's scale by tables.
using Sources = std::vector<NodeId>;
std::optional<Sources> ConcatSources(const Graph& graph, const QuantizedNode& node,
                                     const std::vector<std::vector<NodeId>>& mapped_inputs, Graph& result) {
  if (graph.As<ConcatOp>(node.core) == nullptr || !WholeRange(node)) return std::nullopt;
  const std::vector<NodeId> inputs = graph.Inputs(node.core);
  const auto quantization = [&](NodeId input) { return BytesOf<DequantizeLinearOp>(graph, input); };
  if (!std::ranges::all_of(inputs, quantization)) return std::nullopt;
  Sources sources;
  for (const NodeId input : inputs) {
    NodeId bytes = mapped_inputs[input][0];
    if (*quantization(input) != node.output) {
      bytes = result.Add(graph.node(input).name + ".requantized." + std::to_string(sources.size()),
                         ByteTableOf(graph, input, Activation(), node), {bytes});
    }
    sources.push_back(bytes);
  }
  return sources;
}

// What reads bytes and gives reals.
std::optional<NodeId> AddRealConv(const Graph& graph, NodeId id,
                                  const std::vector<std::vector<NodeId>>& mapped_inputs, Graph& result) {
  OpPtr op = QuantizedConvOf(graph, id, {DataType::kF32, 0, {}, {}}, {0, 0});
  if (op == nullptr) return std::nullopt;
  return AddConv(graph, id, id, std::move(op), mapped_inputs[graph.Inputs(id)[0]][0], result);
}

// The convolution at `id` with the sum behind it, of which it is the first or the second term; null where it
// has a sum already, others read it, or the kernel would be a slower one.
OpPtr ConvWithSum(const Graph& graph, NodeId id, const QuantizedBinaryOp& add, bool first) {
  const auto* conv = graph.As<QuantizedConvOp>(id);
  if (conv == nullptr || !UsedOnce(graph, id) || conv->params().sum) return nullptr;
  ConvWorkload w = conv->workload();
  const auto& [kind, a, b, output, limits] = add.params();
  QuantizedConvParams params = conv->params();
  params.sum = {first ? b : a, output, limits};
  if ((first ? a : b) != params.output) return nullptr;  // read by another scale than it was written by
  if ((w.g > 1 && w.g == w.ic) || !RoundsOnce(params.output, *params.sum)) return nullptr;
  w.post.sum = true;
  return std::make_shared<QuantizedConvOp>(w, std::move(params));
}

// Convolutions take the sums behind them along.
Graph FuseByteResiduals(const Graph& graph) {
  std::vector<std::vector<NodeId>> mapped_inputs(graph.size());
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        mapped_inputs[id] = inputs;
        const auto* add = graph.As<QuantizedBinaryOp>(id);
        if (add == nullptr || add->params().kind != BinaryKind::kAdd) return std::nullopt;
        const std::vector<NodeId> terms = graph.Inputs(id);
        if (terms[0] == terms[1]) return std::nullopt;
        const size_t later = terms[0] > terms[1] ? 0 : 1;
        for (const size_t own : {later, 1 - later}) {
          OpPtr conv = ConvWithSum(graph, terms[own], *add, own == 0);
          if (conv == nullptr) continue;
          return result.Add(graph.node(id).name, std::move(conv),
                            {mapped_inputs[terms[own]][0], inputs[1 - own]});
        }
        return std::nullopt;
      });
}

}  // namespace

Graph FuseQuantized(const Graph& graph) {
  std::vector<std::vector<NodeId>> mapped_inputs(graph.size());
  const Graph fused = DropDeadNodes(RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        mapped_inputs[id] = inputs;
        const std::optional<QuantizedNode> node = QuantizedBy(graph, id);
        if (!node) return AddRealConv(graph, id, mapped_inputs, result);
        const std::string& name = graph.node(id).name;
        const std::vector<NodeId> reals = graph.Inputs(node->core);
        if (OpPtr conv = QuantizedConvOf(graph, node->core, node->output, node->limits))
          return AddConv(graph, node->core, id, std::move(conv), mapped_inputs[reals[0]][0], result);
        if (OpPtr table = ByteTableOf(graph, node->core, Activation(), *node))  // bounds, or another scale
          return result.Add(name, std::move(table), {mapped_inputs[node->core][0]});
        if (const std::optional<Sources> sources = ConcatSources(graph, *node, mapped_inputs, result))
          return result.Add(name, graph.node(node->core).op, *sources);
        OpPtr op = nullptr;
        for (const auto& make :
             {QuantizedBinaryOf, QuantizedAveragePoolOf, ScaleShiftOfBytes, FunctionOf, MoverOf}) {
          if (op == nullptr) op = make(graph, *node);
        }
        if (op == nullptr) return std::nullopt;
        Sources sources;  // in front of what dequantises them
        for (const NodeId input : reals) sources.push_back(mapped_inputs[input][0]);
        return result.Add(name, std::move(op), sources);
      }));
  return DropDeadNodes(FuseByteResiduals(fused));
}

Graph FuseQuantizers(const Graph& graph) {
  std::vector<std::vector<NodeId>> mapped_inputs(graph.size());
  return DropDeadNodes(RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        mapped_inputs[id] = inputs;
        const std::optional<QuantizedNode> node = QuantizedBy(graph, id);
        if (!node) return std::nullopt;
        OpPtr op = QuantizedScaleShiftOf(graph, *node, std::nullopt);
        if (op == nullptr) return std::nullopt;
        return result.Add(graph.node(id).name, std::move(op), mapped_inputs[node->core]);
      }));
}

}  // namespace tilesmith
