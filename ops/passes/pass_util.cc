#include "ops/passes/pass_util.h"

#include <algorithm>

#include "layouts/base/error.h"
#include "ops/conv/conv.h"
#include "ops/elementwise/binary.h"
#include "ops/movement/transpose.h"
#include "ops/movement/view.h"
#include "ops/passes/passes.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

// What becomes of each node: the op it ends up with, the node whose inputs that op takes, and whether a
// consumer has swallowed it.
struct Fusion {
  OpPtr op;
  NodeId head = 0;
  bool swallowed = false;
};

std::vector<Fusion> PlanFusions(const Graph& graph, const FusePair& fuse) {
  std::vector<Fusion> plan(graph.size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    plan[id] = {graph.node(id).op, id};
    const std::vector<NodeId> inputs = graph.Inputs(id);
    if (inputs.size() != 1 || !UsedOnce(graph, inputs[0])) continue;
    Fusion& producer = plan[inputs[0]];
    OpPtr fused = fuse(*producer.op, *plan[id].op, graph.node(inputs[0]).shape);
    if (fused == nullptr) continue;
    plan[id] = {std::move(fused), producer.head};
    producer.swallowed = true;
  }
  return plan;
}

}  // namespace

const ConvWorkload* ConvReading(const Graph& graph, NodeId consumer, NodeId tensor) {
  const ConvOp* conv = graph.As<ConvOp>(consumer);
  if (conv == nullptr) return nullptr;
  const std::vector<NodeId> inputs = graph.Inputs(consumer);
  return inputs[0] == tensor && std::ranges::count(inputs, tensor) == 1 ? &conv->workload() : nullptr;
}

bool IsBinary(const Graph& graph, NodeId id, BinaryKind kind) {
  const BinaryOp* op = graph.As<BinaryOp>(id);
  return op != nullptr && op->kind() == kind && boost::in_degree(id, graph.boost()) == 2;
}

std::optional<float> Common(const std::vector<float>& values) {
  const bool uniform = std::ranges::all_of(values, [&](float value) { return value == values[0]; });
  return values.empty() || !uniform ? std::nullopt : std::optional(values[0]);
}

bool UsedOnce(const Graph& graph, NodeId id) {
  return boost::out_degree(id, graph.boost()) == 1 && !graph.IsOutput(id);
}

Graph FuseIntoProducers(const Graph& graph, const FusePair& fuse) {
  const std::vector<Fusion> plan = PlanFusions(graph, fuse);
  if (std::ranges::none_of(plan, &Fusion::swallowed)) return graph;
  std::vector<std::vector<NodeId>> mapped_inputs(graph.size());
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        mapped_inputs[id] = inputs;
        const Fusion& fusion = plan[id];
        if (fusion.swallowed) return inputs[0];  // never read: the consumer takes the head's inputs
        if (fusion.head == id) return std::nullopt;
        const NodeId named = graph.IsOutput(id) ? id : fusion.head;
        return result.Add(graph.node(named).name, fusion.op, mapped_inputs[fusion.head]);
      });
}
namespace {

using Permutation = std::vector<int64_t>;

const Permutation kChannelsLast = {0, 2, 3, 1}, kChannelsSecond = {0, 3, 1, 2};

// A view of `node` under another shape, without the reshapes in front of it.
NodeId Reshaped(Graph& result, NodeId node, const Shape& shape, const std::string& name = "") {
  while (result.As<ViewOp>(node) != nullptr) node = result.Inputs(node)[0];
  if (name.empty() && result.node(node).shape == shape) return node;
  return result.Add(name, std::make_shared<ViewOp>("Reshape", shape), {node});
}

// Moves the channels, or back what moved them before.
NodeId Transposed(Graph& result, NodeId node, const Permutation& perm, const std::string& name = "") {
  const TransposeOp* before = result.As<TransposeOp>(node);
  if (name.empty() && before != nullptr && before->perm() != perm && before->IsView()) {
    return result.Inputs(node)[0];
  }
  return result.Add(name, std::make_shared<TransposeOp>(perm), {node});
}

// Rows of `channels` as the pixels of one image, which is how they lie in NHWC.
NodeId AsImage(Graph& result, NodeId rows, int64_t pixels, int64_t channels) {
  if (pixels == 1) return Reshaped(result, rows, {1, channels, 1, 1});
  return Transposed(result, Reshaped(result, rows, {1, 1, pixels, channels}), kChannelsSecond);
}

}  // namespace

std::optional<ConvWorkload> DenseWorkload(const GemmOp& gemm, const Shape& shape) {
  ConvWorkload w;
  w.ic = gemm.k(), w.oc = gemm.n();
  w.ih = w.oh = 1;
  w.iw = w.ow = w.oc == 0 ? 0 : ElementCount(shape) / w.oc;
  w.post = {.bias = gemm.bias() != nullptr, .sum = gemm.sum(), .activation = gemm.activation()};
  try {
    ValidateWorkload(w);
  } catch (const Error&) {
    return std::nullopt;
  }
  return w;
}

Graph::NodeId AddDense(Graph& result, const DenseNode& dense, OpPtr conv, const std::vector<NodeId>& inputs) {
  const auto& [name, shape, output, w] = dense;
  std::vector<NodeId> images = {AsImage(result, inputs[0], w.iw, w.ic)};
  if (w.post.sum) images.push_back(AsImage(result, inputs[1], w.ow, w.oc));
  NodeId last = result.Add(output ? name + ".conv" : name, std::move(conv), images);
  const std::string view = output ? name : name + ".view";
  if (w.ow == 1) return Reshaped(result, last, shape, view);
  const Shape rows = {1, 1, w.ow, w.oc};
  const bool reshaped = shape != rows;
  last = Transposed(result, last, kChannelsLast, reshaped ? name + ".rows" : view);
  return reshaped ? Reshaped(result, last, shape, view) : last;
}

}  // namespace tilesmith
