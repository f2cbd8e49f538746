#include "ops/base/input.h"
#include "ops/dense/gemm.h"
#include "ops/elementwise/binary.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

// The constant as one row of n values, or null where it differs from row to row.
const float* RowOf(const ConstantOp* constant, int64_t n) {
  if (constant == nullptr) return nullptr;
  const Tensor& value = *constant->value();
  const bool row = value.type() == DataType::kF32 && !value.shape().empty() && value.size() == n &&
                   value.shape().back() == n;
  return row ? value.floats() : nullptr;
}

OpPtr WithBias(const GemmOp& gemm, const float* row) {
  auto bias = std::make_shared<Tensor>(Shape{gemm.n()});
  for (int64_t i = 0; i < gemm.n(); ++i) {
    bias->floats()[i] = row[i] + (gemm.bias() ? gemm.bias()->floats()[i] : 0.0f);
  }
  return std::make_shared<GemmOp>(gemm.weights(), std::move(bias));
}

OpPtr WithScale(const GemmOp& gemm, const float* row) {
  auto weights = std::make_shared<Tensor>(gemm.weights()->shape());
  for (int64_t i = 0; i < weights->size(); ++i) {
    weights->floats()[i] = gemm.weights()->floats()[i] * row[i / gemm.k()];
  }
  std::shared_ptr<Tensor> bias;
  if (gemm.bias()) {
    bias = std::make_shared<Tensor>(*gemm.bias());
    for (int64_t i = 0; i < gemm.n(); ++i) bias->floats()[i] *= row[i];
  }
  return std::make_shared<GemmOp>(std::move(weights), std::move(bias));
}

}  // namespace

Graph FoldRowConstants(const Graph& graph) {
  std::vector<OpPtr> dense(graph.size());  // of each swallowed dense layer and what it became, the op so far
  std::vector<std::vector<NodeId>> data(graph.size());  // and its inputs in the result
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        if (OpAs<GemmOp>(graph, id) != nullptr) dense[id] = graph.node(id).op, data[id] = inputs;
        const BinaryOp* op = OpAs<BinaryOp>(graph, id);
        if (op == nullptr || (op->kind() != BinaryKind::kAdd && op->kind() != BinaryKind::kMul)) {
          return std::nullopt;
        }
        const std::vector<NodeId> sources = graph.Inputs(id);
        for (const int slot : {0, 1}) {
          const NodeId source = sources[slot];
          if (dense[source] == nullptr || !UsedOnce(graph, source)) continue;
          const auto& gemm = static_cast<const GemmOp&>(*dense[source]);
          const float* row = RowOf(OpAs<ConstantOp>(graph, sources[1 - slot]), gemm.n());
          const bool plain = !gemm.sum() && gemm.activation().kind == ActivationKind::kNone;
          if (row == nullptr || !plain || graph.node(id).shape != graph.node(source).shape) continue;
          dense[id] = op->kind() == BinaryKind::kAdd ? WithBias(gemm, row) : WithScale(gemm, row);
          data[id] = data[source];
          const NodeId named = graph.IsOutput(id) ? id : source;
          return result.Add(graph.node(named).name, dense[id], data[id]);
        }
        return std::nullopt;
      });
}

}  // namespace tilesmith
