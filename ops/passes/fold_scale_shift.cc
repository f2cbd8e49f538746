#include <optional>

#include "ops/conv/conv.h"
#include "ops/conv/conv_transpose.h"
#include "ops/dense/gemm.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"

namespace tilesmith {
namespace {

std::shared_ptr<const Tensor> ScaledBias(const Tensor* bias, const ScaleShiftOp& op) {
  auto result = std::make_shared<Tensor>(Shape{static_cast<int64_t>(op.scale().size())});
  for (size_t c = 0; c < op.scale().size(); ++c) {
    const double before = bias == nullptr ? 0.0 : bias->floats()[c];
    result->floats()[c] = static_cast<float>(before * op.scale()[c] + op.shift()[c]);
  }
  return result;
}

// Scales element i by scale[i / inner % channels].
std::shared_ptr<const Tensor> ScaledWeights(const Tensor& weights, const ScaleShiftOp& op, int64_t inner) {
  auto result = std::make_shared<Tensor>(weights.shape(), Layout::Nchw(), NewMemory::kAnything);
  const int64_t channels = static_cast<int64_t>(op.scale().size());
  const int64_t rows = weights.size() / inner;
  const float* from = weights.floats();
  float* to = result->floats();
  for (int64_t row = 0; row < rows; ++row, from += inner, to += inner) {
    const float scale = op.scale()[row % channels];
    for (int64_t i = 0; i < inner; ++i) to[i] = from[i] * scale;
  }
  return result;
}

OpPtr Fold(const ConvOp& conv, const ScaleShiftOp& op) {
  ConvWorkload workload = conv.workload();
  if (workload.post.sum || workload.post.activation.kind != ActivationKind::kNone) return nullptr;
  workload.post.bias = true;
  workload.post.activation = op.activation();
  const int64_t taps = conv.weights()->size() / workload.oc;
  return std::make_shared<ConvOp>(workload, ScaledWeights(*conv.weights(), op, taps),
                                  ScaledBias(conv.bias().get(), op));
}

OpPtr Fold(const ConvTransposeOp& conv, const ScaleShiftOp& op) {
  const Shape& weights = conv.weights()->shape();  // input channels by output channels
  if (conv.params().groups != 1 || conv.activation().kind != ActivationKind::kNone) return nullptr;
  return std::make_shared<ConvTransposeOp>(conv.params(),
                                           ScaledWeights(*conv.weights(), op, weights[2] * weights[3]),
                                           ScaledBias(conv.bias().get(), op), op.activation());
}

// Channels are along axis 1, the columns of a matrix; in other ranks one value for all of them fits, too.
OpPtr Fold(const GemmOp& gemm, const ScaleShiftOp& op, const Shape& shape) {
  if (gemm.sum() || gemm.activation().kind != ActivationKind::kNone) return nullptr;
  if (shape.size() == 2) {
    return std::make_shared<GemmOp>(ScaledWeights(*gemm.weights(), op, gemm.k()),
                                    ScaledBias(gemm.bias().get(), op), op.activation());
  }
  const std::optional<float> scale = Common(op.scale()), shift = Common(op.shift());
  if (!scale || !shift) return nullptr;
  const ScaleShiftOp columns(std::vector<float>(gemm.n(), *scale), std::vector<float>(gemm.n(), *shift));
  return std::make_shared<GemmOp>(ScaledWeights(*gemm.weights(), columns, gemm.k()),
                                  ScaledBias(gemm.bias().get(), columns), op.activation());
}

OpPtr FoldPair(const Op& producer, const Op& consumer, const Shape& shape) {
  const auto* op = dynamic_cast<const ScaleShiftOp*>(&consumer);
  if (op == nullptr || !op->activation().fusable()) return nullptr;
  if (const auto* conv = dynamic_cast<const ConvOp*>(&producer)) return Fold(*conv, *op);
  if (const auto* conv = dynamic_cast<const ConvTransposeOp*>(&producer)) return Fold(*conv, *op);
  if (const auto* gemm = dynamic_cast<const GemmOp*>(&producer)) return Fold(*gemm, *op, shape);
  return nullptr;
}

}  // namespace

Graph FoldScaleShift(const Graph& graph) { return FuseIntoProducers(graph, FoldPair); }

}  // namespace tilesmith
