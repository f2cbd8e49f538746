#include <algorithm>
#include <numeric>

#include "ops/dense/attention.h"
#include "ops/dense/matmul.h"
#include "ops/dense/softmax.h"
#include "ops/elementwise/binary.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

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
  const SoftmaxOp* softmax = OpAs<SoftmaxOp>(graph, id);
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
  const MatMulOp* op = OpAs<MatMulOp>(graph, id);
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
  const MatMulOp* op = OpAs<MatMulOp>(graph, id);
  if (op == nullptr || !UsedOnce(graph, id)) return false;
  const std::vector<Shape> shapes = graph.InputShapes(id);
  const MatMulParams& p = op->params();
  return IsLinear(p) && p.out_perm.empty() && p.out_shape.empty() && p.a.Seen(shapes[0]).size() >= 2 &&
         p.b.Seen(shapes[1]).size() >= 2;
}

std::optional<Found> FindScores(const Graph& graph, NodeId id) {
  if (AreScores(graph, id)) return Found{id, {}};
  const BinaryOp* add = OpAs<BinaryOp>(graph, id);
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
        const MatMulParams& s = OpAs<MatMulOp>(graph, found->scores)->params();
        AttentionParams params;
        params.q = s.a;
        params.k = Transposed(s.b, s.b.Seen(graph.InputShapes(found->scores)[1]).size());
        params.v = mix->v;
        params.out_perm = mix->out_perm, params.out_shape = OpAs<MatMulOp>(graph, id)->params().out_shape;
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
