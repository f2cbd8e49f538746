#include "ops/conv/conv.h"
#include "ops/elementwise/activations.h"
#include "ops/movement/concat.h"
#include "ops/movement/indexing.h"
#include "ops/movement/transpose.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"
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

// The ops on bytes; those of convolutions take more than their op.
constexpr OpPtr (*kByteOps[])(const Op&, const ByteForm&) = {QuantizedBinaryOp::Of, QuantizedMaxPoolOp::Of,
                                                             QuantizedAveragePoolOp::Of,
                                                             QuantizedScaleShiftOp::Of, ByteTableOp::Of};

// A node on reals whose output is stored as bytes.
struct StoredNode {
  NodeId core = 0;
  ByteForm form;  // without its inputs
};

// What the node `id` quantises, when only that reads it. Bounds that activations behind it set are its own.
std::optional<StoredNode> StoredBy(const Graph& graph, NodeId id) {
  const Quantization* output = BytesOf<QuantizeLinearOp>(graph, id);
  if (output == nullptr) return std::nullopt;
  StoredNode node{graph.Inputs(id)[0], {.output = *output, .limits = RangeOf(output->type)}};
  while (UsedOnce(graph, node.core)) {
    const auto* activation = graph.As<ActivationOp>(node.core);
    if (activation == nullptr) return node;
    const auto limits = Clamped(activation->activation(), *output, node.form.limits);
    if (!limits) return node;
    node.form.limits = *limits;
    node.core = graph.Inputs(node.core)[0];
  }
  return std::nullopt;
}

// Whether bytes are dequantised to all of these, of which there is one at least; the form then says how.
bool ReadBytes(const Graph& graph, const std::vector<NodeId>& reals, ByteForm& form) {
  for (const NodeId real : reals) {
    const Quantization* input = BytesOf<DequantizeLinearOp>(graph, real);
    if (input == nullptr) return false;
    form.inputs.push_back(*input);
    form.shapes.push_back(graph.node(real).shape);
  }
  return !reals.empty();
}

OpPtr ConvOnBytes(const Graph& graph, NodeId id, const ByteForm& form) {
  if (const auto* conv = graph.As<ConvOp>(id))
    return QuantizedConvOp::Of(conv->workload(), conv->stored(), form);
  const auto* gemm = graph.As<GemmOp>(id);
  if (gemm == nullptr) return nullptr;
  const std::optional<ConvWorkload> workload = DenseWorkload(*gemm, graph.node(id).shape);
  return workload ? QuantizedConvOp::Of(*workload, gemm->stored(), form) : nullptr;
}

OpPtr OpOnBytes(const OpPtr& op, const ByteForm& form) {
  for (const auto of : kByteOps)
    if (OpPtr on_bytes = of(*op, form)) return on_bytes;
  // What moves elements without looking at them does so with their bytes.
  const bool moves = op->IsView() || dynamic_cast<const ConcatOp*>(op.get()) != nullptr ||
                     dynamic_cast<const SliceOp*>(op.get()) != nullptr ||
                     dynamic_cast<const TransposeOp*>(op.get()) != nullptr;
  return moves && form.KeepsBytes() ? op : nullptr;
}

NodeId AddConv(const Graph& graph, NodeId core, NodeId named, OpPtr op, NodeId source, Graph& result) {
  const Node& node = graph.node(named);
  if (graph.As<GemmOp>(core) == nullptr) return result.Add(node.name, std::move(op), {source});
  const ConvWorkload& w = dynamic_cast<const QuantizedConvOp&>(*op).workload();
  return AddDense(result, {node.name, node.shape, graph.IsOutput(named), w}, std::move(op), {source});
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

// Brings what a Concat reads to its output's scale, by tables.
void Requantize(const Graph& graph, const std::vector<NodeId>& reals, ByteForm& form,
                std::vector<NodeId>& sources, Graph& result) {
  for (size_t i = 0; i < reals.size(); ++i) {
    if (form.inputs[i] == form.output || form.limits != RangeOf(form.output.type)) continue;
    auto table = std::make_shared<ByteTableOp>(Activation(), form.inputs[i], form.output, form.limits);
    sources[i] = result.Add(graph.node(reals[i]).name + ".requantized." + std::to_string(i), std::move(table),
                            {sources[i]});
    form.inputs[i] = form.output;
  }
}

}  // namespace

Graph FuseQuantized(const Graph& graph) {
  std::vector<std::vector<NodeId>> mapped_inputs(graph.size());
  const Graph fused = RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        mapped_inputs[id] = inputs;
        const std::optional<StoredNode> stored = StoredBy(graph, id);
        auto [core, form] = stored.value_or(StoredNode{id, {.output = {DataType::kF32}, .limits = {0, 0}}});
        // Where nothing is computed in between, bounds or another scale are.
        const bool only_stored = graph.As<DequantizeLinearOp>(core) != nullptr;
        const std::vector<NodeId> reals = only_stored ? std::vector{core} : graph.Inputs(core);
        if (!ReadBytes(graph, reals, form)) return std::nullopt;
        std::vector<NodeId> sources;  // in front of what dequantises them
        sources.reserve(reals.size());
        for (const NodeId real : reals) sources.push_back(mapped_inputs[real][0]);
        if (OpPtr conv = ConvOnBytes(graph, core, form))
          return AddConv(graph, core, id, std::move(conv), sources[0], result);
        if (!stored) return std::nullopt;
        if (graph.As<ConcatOp>(core) != nullptr) Requantize(graph, reals, form, sources, result);
        OpPtr op = OpOnBytes(graph.node(core).op, form);
        if (op == nullptr) return std::nullopt;
        return result.Add(graph.node(id).name, std::move(op), sources);
      });
  return FuseByteResiduals(fused);
}

Graph FuseQuantizers(const Graph& graph) {
  std::vector<std::vector<NodeId>> mapped_inputs(graph.size());
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        mapped_inputs[id] = inputs;
        const std::optional<StoredNode> node = StoredBy(graph, id);
        if (!node) return std::nullopt;
        OpPtr op = QuantizedScaleShiftOp::Of(*graph.node(node->core).op, node->form);
        if (op == nullptr) return std::nullopt;
        return result.Add(graph.node(id).name, std::move(op), mapped_inputs[node->core]);
      });
}

}  // namespace tilesmith
