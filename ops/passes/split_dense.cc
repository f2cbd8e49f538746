#include <algorithm>

#include "ops/base/elements.h"
#include "ops/base/input.h"
#include "ops/dense/gemm.h"
#include "ops/movement/indexing.h"
#include "ops/movement/transpose.h"
#include "ops/movement/view.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

// A part of a dense layer's columns: which, and what lies between the layer and the Gather that picks it, in
// order; of each of those nodes, the axis of its output that tells parts apart.
struct Pick {
  NodeId gather = 0;
  int64_t part = 0;
  std::vector<NodeId> path;
  std::vector<int64_t> axes;
};

int64_t Product(const Shape& shape, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t axis = begin; axis < end; ++axis) product *= shape[axis];
  return product;
}

// The axis of `shape` that has `size` steps of as many elements, -1 where there is none.
int64_t AxisOf(const Shape& shape, int64_t size, int64_t elements) {
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == size && Product(shape, axis + 1, shape.size()) == elements)
      return static_cast<int64_t>(axis);
  }
  return -1;
}

// The axis of what a view or transpose gives that is `axis` of what it reads, -1 where it is none any more.
int64_t AxisBehind(const Graph& graph, NodeId id, const Shape& from, int64_t axis) {
  if (OpAs<ViewOp>(graph, id) != nullptr)
    return AxisOf(graph.node(id).shape, from[axis],
                  Product(from, static_cast<size_t>(axis) + 1, from.size()));
  const TransposeOp* op = OpAs<TransposeOp>(graph, id);
  if (op == nullptr) return -1;
  return std::ranges::find(op->perm(), axis) - op->perm().begin();
}

// The part that a Gather along `axis` picks, -1 for others.
int64_t PartOf(const Graph& graph, NodeId id, NodeId data, int64_t axis) {
  const GatherOp* gather = OpAs<GatherOp>(graph, id);
  const std::vector<NodeId> inputs = graph.Inputs(id);
  if (gather == nullptr || inputs[0] != data || gather->axis() != axis) return -1;
  const ConstantOp* index = OpAs<ConstantOp>(graph, inputs[1]);
  if (index == nullptr || !index->value()->shape().empty()) return -1;
  const auto part = ElementsAs<int64_t>(*index->value())[0];
  return part < 0 ? part + graph.node(data).shape[axis] : part;
}

// All that reads the last node of `path`; false where something else does than Gathers and what they see
// through.
bool FindPicks(const Graph& graph, std::vector<NodeId>& path, std::vector<int64_t>& axes,
               std::vector<Pick>& picks) {
  const NodeId last = path.back();
  if (graph.IsOutput(last)) return false;
  for (const NodeId consumer : graph.Consumers(last)) {
    const int64_t part = PartOf(graph, consumer, last, axes.back());
    if (part >= 0) {
      picks.push_back({consumer, part, path, axes});
      continue;
    }
    const int64_t axis = AxisBehind(graph, consumer, graph.node(last).shape, axes.back());
    if (axis < 0) return false;
    path.push_back(consumer), axes.push_back(axis);
    if (!FindPicks(graph, path, axes, picks)) return false;
    path.pop_back(), axes.pop_back();
  }
  return true;
}

// Those of a dense layer whose every use is one, each of another part; none for other nodes.
std::vector<Pick> PicksOf(const Graph& graph, NodeId id) {
  const GemmOp* gemm = OpAs<GemmOp>(graph, id);
  if (gemm == nullptr || gemm->sum() || gemm->stored().weights || !UsedOnce(graph, id)) return {};
  const NodeId view = graph.Consumers(id)[0];
  const Shape& shape = graph.node(view).shape;
  if (OpAs<ViewOp>(graph, view) == nullptr) return {};
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] < 2 || Product(shape, axis, shape.size()) != gemm->n()) continue;
    std::vector<NodeId> path = {view};
    std::vector<int64_t> axes = {static_cast<int64_t>(axis)};
    std::vector<Pick> picks;
    if (!FindPicks(graph, path, axes, picks)) return {};
    std::ranges::sort(picks, {}, &Pick::part);
    const bool twice = std::ranges::adjacent_find(picks, {}, &Pick::part) != picks.end();
    return twice ? std::vector<Pick>() : picks;
  }
  return {};
}

std::shared_ptr<const Tensor> Rows(const Tensor& tensor, int64_t first, int64_t count) {
  Shape shape = tensor.shape();
  const int64_t row = tensor.size() / shape[0];
  shape[0] = count;
  auto rows = std::make_shared<Tensor>(std::move(shape));
  std::copy_n(tensor.floats() + first * row, count * row, rows->floats());
  return rows;
}

OpPtr PartOfDense(const GemmOp& gemm, int64_t part, int64_t parts) {
  const int64_t count = gemm.n() / parts;
  return std::make_shared<GemmOp>(Rows(*gemm.weights(), part * count, count),
                                  gemm.bias() ? Rows(*gemm.bias(), part * count, count) : nullptr,
                                  gemm.activation());
}

// The node of a path without the axis that tells parts apart.
OpPtr Without(const Graph& graph, NodeId id, int64_t axis) {
  const TransposeOp* transpose = OpAs<TransposeOp>(graph, id);
  if (transpose == nullptr) {
    Shape shape = graph.node(id).shape;
    shape.erase(shape.begin() + axis);
    return std::make_shared<ViewOp>("Reshape", std::move(shape));
  }
  std::vector<int64_t> perm = transpose->perm();
  const int64_t read = perm[axis];
  perm.erase(perm.begin() + axis);
  for (int64_t& source : perm) source -= source > read ? 1 : 0;
  return std::make_shared<TransposeOp>(std::move(perm));
}

}  // namespace

Graph SplitDense(const Graph& graph) {
  std::vector<std::vector<NodeId>> data(graph.size());  // of each dense layer, its inputs in the result
  std::vector<std::pair<NodeId, Pick>> picked(graph.size());
  std::vector<bool> is_picked(graph.size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    for (Pick& pick : PicksOf(graph, id)) {
      is_picked[pick.gather] = true;
      picked[pick.gather] = {id, std::move(pick)};
    }
  }
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        const GemmOp* dense = OpAs<GemmOp>(graph, id);
        if (dense != nullptr) data[id] = inputs;
        if (!is_picked[id]) return std::nullopt;
        const auto& [source, pick] = picked[id];
        const int64_t parts = graph.node(pick.path[0]).shape[pick.axes[0]];
        NodeId node = result.Add(graph.node(source).name,
                                 PartOfDense(*OpAs<GemmOp>(graph, source), pick.part, parts), data[source]);
        for (size_t i = 0; i < pick.path.size(); ++i) {
          const NodeId named = i + 1 < pick.path.size() ? pick.path[i] : id;
          node = result.Add(graph.node(named).name, Without(graph, pick.path[i], pick.axes[i]), {node});
        }
        return node;
      });
}

}  // namespace tilesmith
