#include <algorithm>
#include <optional>

#include "layouts/derived_tensors.h"
#include "ops/base/op.h"
#include "ops/conv/conv.h"
#include "ops/dense/gemm.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"

namespace tilesmith {
namespace {

OpPtr FoldPair(const Op& producer, const Op& consumer, const Shape& shape) {
  const auto* op = dynamic_cast<const ScaleShiftOp*>(&consumer);
  return op == nullptr || !op->activation().fusable() ? nullptr : producer.WithScaleShift(*op, shape);
}

}  // namespace

Graph FoldScaleShift(const Graph& graph) { return FuseIntoProducers(graph, FoldPair); }

namespace {

// s2 * (s1 * x + b1) + b2 = (s2 * s1) * x + (s2 * b1 + b2)
OpPtr Merge(const Op& producer, const Op& consumer, const Shape&) {
  const auto* first = dynamic_cast<const ScaleShiftOp*>(&producer);
  const auto* second = dynamic_cast<const ScaleShiftOp*>(&consumer);
  if (first == nullptr || second == nullptr || first->activation().kind != ActivationKind::kNone) {
    return nullptr;
  }
  std::vector<float> scale = second->scale(), shift = second->shift();
  for (size_t c = 0; c < scale.size(); ++c) {
    const double factor = second->scale()[c];
    scale[c] = static_cast<float>(factor * first->scale()[c]);
    shift[c] = static_cast<float>(factor * first->shift()[c] + second->shift()[c]);
  }
  return std::make_shared<ScaleShiftOp>(std::move(scale), std::move(shift), second->activation());
}

}  // namespace

Graph MergeScaleShifts(const Graph& graph) { return FuseIntoProducers(graph, Merge); }

namespace {

using NodeId = Graph::NodeId;

bool ReadsWithoutPadding(const Graph& graph, NodeId consumer, NodeId tensor) {
  const ConvWorkload* w = ConvReading(graph, consumer, tensor);
  return w != nullptr && std::max({w->ph, w->pw, w->pad_bottom(), w->pad_right()}) <= 0;
}

bool CanBePushed(const Graph& graph, NodeId id) {
  const ScaleShiftOp* op = graph.As<ScaleShiftOp>(id);
  if (op == nullptr || op->activation().kind != ActivationKind::kNone || graph.IsOutput(id)) return false;
  return std::ranges::all_of(graph.Consumers(id),
                             [&](NodeId consumer) { return ReadsWithoutPadding(graph, consumer, id); });
}

// sum w * (s * x + t) = sum (w * s) * x + sum w * t
OpPtr Scaled(const ConvOp& conv, const ScaleShiftOp& op) {
  ConvWorkload workload = conv.workload();
  workload.post.bias = true;
  const int64_t group_in = workload.ic / workload.g, taps = workload.kh * workload.kw;
  // visit(index, output channel, input channel)
  const auto for_each_weight = [&](const auto& visit) {
    for (int64_t o = 0; o < workload.oc; ++o) {
      const int64_t group = o / (workload.oc / workload.g);
      for (int64_t i = 0; i < group_in * taps; ++i)
        visit(o * group_in * taps + i, o, group * group_in + i / taps);
    }
  };
  const auto derivation = [&](std::string_view what, const std::vector<float>& factors) {
    Derivation derivation(what);
    return derivation.Add(conv.weights()).Add(conv.bias()).Add(factors).Add({workload.oc, workload.g, taps});
  };
  TensorPtr weights = Derived(derivation("weights * scale of inputs", op.scale()), [&] {
    auto scaled = std::make_shared<Tensor>(workload.weights_shape());
    for_each_weight([&](int64_t at, int64_t, int64_t channel) {
      const double weight = conv.weights()->floats()[at];
      scaled->floats()[at] = static_cast<float>(weight * op.scale()[channel]);
    });
    return scaled;
  });
  TensorPtr bias = Derived(derivation("bias + weights * shift of inputs", op.shift()), [&] {
    std::vector<double> sums(static_cast<size_t>(workload.oc), 0.0);
    if (conv.bias() != nullptr) std::copy_n(conv.bias()->floats(), workload.oc, sums.begin());
    for_each_weight([&](int64_t at, int64_t o, int64_t channel) {
      const double weight = conv.weights()->floats()[at];
      sums[o] += weight * op.shift()[channel];
    });
    auto shifted = std::make_shared<Tensor>(Shape{workload.oc});
    std::ranges::transform(sums, shifted->floats(), [](double sum) { return static_cast<float>(sum); });
    return shifted;
  });
  return std::make_shared<ConvOp>(workload, std::move(weights), std::move(bias));
}

}  // namespace

Graph PushScaleShift(const Graph& graph) {
  bool any = false;
  for (NodeId id = 0; id < graph.size() && !any; ++id) any = CanBePushed(graph, id);
  if (!any) return graph;
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        if (CanBePushed(graph, id)) return inputs[0];
        const ConvOp* conv = graph.As<ConvOp>(id);
        if (conv == nullptr) return std::nullopt;
        const NodeId data = graph.Inputs(id)[0];
        if (!CanBePushed(graph, data)) return std::nullopt;
        return result.Add(graph.node(id).name, Scaled(*conv, *graph.As<ScaleShiftOp>(data)), inputs);
      });
}

namespace {

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
  Derivation derivation("weights * row");
  derivation.Add(gemm.weights()).Add(std::span(row, static_cast<size_t>(gemm.n())));
  TensorPtr weights = Derived(std::move(derivation), [&] {
    auto scaled = std::make_shared<Tensor>(gemm.weights()->shape());
    for (int64_t i = 0; i < scaled->size(); ++i) {
      scaled->floats()[i] = gemm.weights()->floats()[i] * row[i / gemm.k()];
    }
    return scaled;
  });
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
        if (graph.As<GemmOp>(id) != nullptr) dense[id] = graph.node(id).op, data[id] = inputs;
        const BinaryOp* op = graph.As<BinaryOp>(id);
        if (op == nullptr || (op->kind() != BinaryKind::kAdd && op->kind() != BinaryKind::kMul)) {
          return std::nullopt;
        }
        const std::vector<NodeId> sources = graph.Inputs(id);
        for (const int slot : {0, 1}) {
          const NodeId source = sources[slot];
          if (dense[source] == nullptr || !UsedOnce(graph, source)) continue;
          const auto& gemm = static_cast<const GemmOp&>(*dense[source]);
          const float* row = RowOf(graph.As<ConstantOp>(sources[1 - slot]), gemm.n());
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
