#include <algorithm>
#include <numeric>

#include "layouts/base/error.h"
#include "ops/base/op.h"
#include "ops/dense/attention.h"
#include "ops/dense/matmul.h"
#include "ops/dense/softmax.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/movement/transpose.h"
#include "ops/movement/view.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

// The factor of a multiplication by one number, else nullopt.
std::optional<float> FactorOf(const Op& op) {
  const auto* scale = dynamic_cast<const ScaleShiftOp*>(&op);
  if (scale == nullptr || scale->activation().kind != ActivationKind::kNone) return std::nullopt;
  return Common(scale->shift()) == 0.0f ? Common(scale->scale()) : std::nullopt;
}

// Whether one of the two axes of a matrix is dense, as what packs it wants.
bool HasDenseAxis(const Arrangement& arrangement, const Shape& tensor) {
  const Shape seen = arrangement.Seen(tensor);
  const SeenStrides strides = StridesOf(arrangement, tensor);
  for (size_t axis = seen.size() < 2 ? 0 : seen.size() - 2; axis < seen.size(); ++axis) {
    if (strides.strides[axis] == 1 || seen[axis] == 1) return true;
  }
  return false;
}

// `axes` of the view for each axis of `shape`, whose sizes are their products; nullopt where the view merges
// axes.
std::optional<std::vector<std::vector<int64_t>>> Split(const Shape& view, const Shape& shape) {
  std::vector<std::vector<int64_t>> axes(shape.size());
  size_t next = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    int64_t size = 1;
    while (next < view.size() && (size < shape[axis] || (axes[axis].empty() && view[next] == shape[axis]))) {
      size *= view[next];
      axes[axis].push_back(static_cast<int64_t>(next++));
    }
    if (size != shape[axis]) return std::nullopt;
  }
  for (; next < view.size() && view[next] == 1 && !axes.empty(); ++next) {
    axes.back().push_back(static_cast<int64_t>(next));
  }
  return next == view.size() ? std::optional(axes) : std::nullopt;
}

// What `arrangement` sees of a transposed tensor, as an arrangement of the tensor itself.
std::optional<Arrangement> BehindTranspose(const Arrangement& arrangement, const TransposeOp& op,
                                           const Shape& to) {
  const Shape& view = arrangement.view.empty() ? to : arrangement.view;
  const auto axes = Split(view, to);
  if (!axes) return std::nullopt;
  std::vector<int64_t> source(op.perm().size());  // of each axis of the tensor, its axis when transposed
  for (size_t axis = 0; axis < source.size(); ++axis) source[op.perm()[axis]] = static_cast<int64_t>(axis);
  Arrangement result;
  std::vector<int64_t> place(view.size());  // of each axis of the view, its place now
  for (const int64_t axis : source) {
    for (const int64_t part : (*axes)[axis]) {
      place[part] = static_cast<int64_t>(result.view.size());
      result.view.push_back(view[part]);
    }
  }
  for (size_t axis = 0; axis < view.size(); ++axis) {
    result.perm.push_back(place[arrangement.perm.empty() ? axis : arrangement.perm[axis]]);
  }
  return result;
}

bool Fits(const Arrangement& arrangement, const Shape& tensor) {
  try {
    return HasDenseAxis(arrangement, tensor);
  } catch (const Error&) {
    return false;  // images would not stay in place
  }
}

// Moves `source` back over reshapes, transposes and multiplications by a number in front of it.
void Absorb(const Graph& graph, NodeId& source, Arrangement& arrangement, float& scale) {
  while (true) {
    const Op& op = *graph.node(source).op;
    const std::vector<NodeId> inputs = graph.Inputs(source);
    std::optional<Arrangement> behind;
    if (const std::optional<float> factor = FactorOf(op)) {
      scale *= *factor;
      source = inputs[0];
      continue;
    }
    if (graph.As<ViewOp>(source) != nullptr) {
      behind = arrangement;
      if (behind->view.empty()) behind->view = graph.node(source).shape;
    } else if (const auto* transpose = graph.As<TransposeOp>(source)) {
      behind = BehindTranspose(arrangement, *transpose, graph.node(source).shape);
    }
    if (!behind || behind->view.empty() || !Fits(*behind, graph.node(inputs[0]).shape)) return;
    source = inputs[0];
    arrangement = *behind;
    if (arrangement.view == graph.node(source).shape) arrangement.view.clear();
  }
}

// What follows a product, computed with it; null where it cannot be.
OpPtr FuseBehind(const Op& producer, const Op& consumer, const Shape&) {
  const auto* matmul = dynamic_cast<const MatMulOp*>(&producer);
  if (matmul == nullptr) return nullptr;
  MatMulParams params = matmul->params();
  const bool linear = params.activation.kind == ActivationKind::kNone;
  if (const std::optional<float> factor = FactorOf(consumer); factor && linear && !params.bias) {
    params.scale *= *factor;
  } else if (const auto* op = dynamic_cast<const ActivationOp*>(&consumer); op != nullptr && linear) {
    params.activation = op->activation();
  } else if (const auto* op = dynamic_cast<const TransposeOp*>(&consumer); op && params.out_shape.empty()) {
    const std::vector<int64_t>& perm = op->perm();
    if (!params.out_perm.empty() || perm.back() + 1 != static_cast<int64_t>(perm.size())) return nullptr;
    params.out_perm.resize(perm.size());
    for (size_t axis = 0; axis < perm.size(); ++axis)
      params.out_perm[perm[axis]] = static_cast<int64_t>(axis);
  } else {
    return nullptr;
  }
  return std::make_shared<MatMulOp>(std::move(params));
}

// The constant that an Add adds to every row of a product, with the product's slot; nullptr for others.
std::shared_ptr<const Tensor> AddedRow(const Graph& graph, NodeId id, int* slot) {
  const BinaryOp* add = graph.As<BinaryOp>(id);
  if (add == nullptr || add->kind() != BinaryKind::kAdd) return nullptr;
  const std::vector<NodeId> inputs = graph.Inputs(id);
  for (*slot = 0; *slot < 2; ++*slot) {
    const MatMulOp* product = graph.As<MatMulOp>(inputs[*slot]);
    const ConstantOp* constant = graph.As<ConstantOp>(inputs[1 - *slot]);
    if (product == nullptr || constant == nullptr || !UsedOnce(graph, inputs[*slot])) continue;
    const MatMulParams& p = product->params();
    const Shape &shape = graph.node(id).shape, &row = constant->value()->shape();
    const bool plain = !p.bias && p.activation.kind == ActivationKind::kNone && p.out_perm.empty();
    const bool matrix = shape == graph.node(inputs[*slot]).shape && shape.size() >= 2;
    if (plain && matrix && !row.empty() && row.back() == shape.back() &&
        constant->value()->size() == shape.back()) {
      return constant->value();
    }
  }
  return nullptr;
}

Graph WithRows(const Graph& graph) {
  std::vector<std::vector<NodeId>> data(graph.size());
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        data[id] = inputs;
        int slot = 0;
        const std::shared_ptr<const Tensor> row = AddedRow(graph, id, &slot);
        if (row == nullptr) return std::nullopt;
        const NodeId product = graph.Inputs(id)[slot];
        // A vector has no columns to add a row to.
        if (graph.node(graph.Inputs(product)[1]).shape.size() < 2) return std::nullopt;
        MatMulParams params = graph.As<MatMulOp>(product)->params();
        params.bias = std::make_shared<Tensor>(row->Reshaped({row->size()}));
        const NodeId named = graph.IsOutput(id) ? id : product;
        return result.Add(graph.node(named).name, std::make_shared<MatMulOp>(std::move(params)),
                          data[product]);
      });
}

}  // namespace

Graph FuseMatMul(const Graph& graph) {
  const Graph behind = FuseIntoProducers(WithRows(FuseIntoProducers(graph, FuseBehind)), FuseBehind);
  return RewriteGraph(
      behind, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        const MatMulOp* op = behind.As<MatMulOp>(id);
        if (op == nullptr) return std::nullopt;
        MatMulParams params = op->params();
        std::vector<NodeId> sources = inputs;
        Absorb(result, sources[0], params.a, params.scale);
        Absorb(result, sources[1], params.b, params.scale);
        return result.Add(behind.node(id).name, std::make_shared<MatMulOp>(std::move(params)), sources);
      });
}

namespace {

bool IsLinear(const MatMulParams& p) { return !p.bias && p.activation.kind == ActivationKind::kNone; }

// The last two axes the other way round.
Arrangement Transposed(const Arrangement& arrangement, size_t rank) {
  Arrangement result = arrangement;
  if (result.perm.empty()) {
    result.perm.resize(rank);
    std::iota(result.perm.begin(), result.perm.end(), 0);
  }
  std::swap(result.perm[rank - 1], result.perm[rank - 2]);
  return result;
}

bool IsSoftmaxOfRows(const Graph& graph, NodeId id) {
  const SoftmaxOp* softmax = graph.As<SoftmaxOp>(id);
  const auto last = static_cast<int64_t>(graph.node(id).shape.size()) - 1;
  return softmax != nullptr && !softmax->logarithm() && softmax->first_axis() == last &&
         softmax->last_axis() == last;
}

// What a product of weights and values is: weights * v, or, its columns being rows, v^T * weights^T, as
// networks of images write it.
struct Mix {
  NodeId weights = 0;
  int values = 1;  // slot of v
  Arrangement v = {};
  std::vector<int64_t> out_perm = {};
};

std::optional<Mix> MixOf(const Graph& graph, NodeId id) {
  const MatMulOp* op = graph.As<MatMulOp>(id);
  if (op == nullptr || !IsLinear(op->params()) || op->params().scale != 1) return std::nullopt;
  const MatMulParams& p = op->params();
  const std::vector<Shape> shapes = graph.InputShapes(id);
  const std::vector<NodeId> inputs = graph.Inputs(id);
  const size_t rank = p.a.Seen(shapes[0]).size(), columns_rank = p.b.Seen(shapes[1]).size();
  if (rank < 2 || columns_rank < 2) return std::nullopt;
  const auto is_weights = [&](NodeId input) {
    return IsSoftmaxOfRows(graph, input) && UsedOnce(graph, input);
  };
  if (p.a == Arrangement() && is_weights(inputs[0])) return Mix{inputs[0], 1, p.b, p.out_perm};
  if (p.b != Transposed({}, columns_rank) || !is_weights(inputs[1])) return std::nullopt;
  const Arrangement out = Transposed({{}, p.out_perm}, std::max(rank, columns_rank));
  return Mix{inputs[1], 0, Transposed(p.a, rank), out.perm};
}

// Nodes of softmax(q * k + mask) * v, the mask where there is one.
struct Found {
  NodeId scores = 0;
  std::optional<NodeId> mask;
};

// Whether a node is a product that nothing but scores are read from: of matrices, and as it comes.
bool AreScores(const Graph& graph, NodeId id) {
  const MatMulOp* op = graph.As<MatMulOp>(id);
  if (op == nullptr || !UsedOnce(graph, id)) return false;
  const std::vector<Shape> shapes = graph.InputShapes(id);
  const MatMulParams& p = op->params();
  return IsLinear(p) && p.out_perm.empty() && p.out_shape.empty() && p.a.Seen(shapes[0]).size() >= 2 &&
         p.b.Seen(shapes[1]).size() >= 2;
}

std::optional<Found> FindScores(const Graph& graph, NodeId id) {
  if (AreScores(graph, id)) return Found{id, {}};
  const BinaryOp* add = graph.As<BinaryOp>(id);
  if (add == nullptr || add->kind() != BinaryKind::kAdd || !UsedOnce(graph, id)) return std::nullopt;
  const std::vector<NodeId> inputs = graph.Inputs(id);
  for (const int slot : {0, 1}) {
    const bool same = graph.node(inputs[slot]).shape == graph.node(id).shape;
    if (same && AreScores(graph, inputs[slot]) && graph.node(inputs[1 - slot]).shape.size() >= 2) {
      return Found{inputs[slot], inputs[1 - slot]};
    }
  }
  return std::nullopt;
}

}  // namespace

Graph RecognizeAttention(const Graph& graph) {
  std::vector<std::vector<NodeId>> mapped(graph.size());  // of each node, its inputs in the result
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        mapped[id] = inputs;
        const std::optional<Mix> mix = MixOf(graph, id);
        if (!mix) return std::nullopt;
        const NodeId masked = graph.Inputs(mix->weights)[0];
        const std::optional<Found> found = FindScores(graph, masked);
        if (!found) return std::nullopt;
        const MatMulParams& s = graph.As<MatMulOp>(found->scores)->params();
        AttentionParams params;
        params.q = s.a;
        params.k = Transposed(s.b, s.b.Seen(graph.InputShapes(found->scores)[1]).size());
        params.v = mix->v;
        params.out_perm = mix->out_perm, params.out_shape = graph.As<MatMulOp>(id)->params().out_shape;
        params.scale = s.scale;
        params.masked = found->mask.has_value();
        std::vector<NodeId> sources = mapped[found->scores];
        sources.push_back(inputs[mix->values]);
        if (found->mask) {
          const bool first = graph.Inputs(masked)[0] == *found->mask;
          sources.push_back(mapped[masked][first ? 0 : 1]);
        }
        return result.Add(graph.node(id).name, std::make_shared<AttentionOp>(std::move(params)), sources);
      });
}

}  // namespace tilesmith
