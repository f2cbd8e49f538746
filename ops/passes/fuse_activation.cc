#include "ops/conv/conv.h"
#include "ops/conv/conv_transpose.h"
#include "ops/dense/gemm.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"

namespace tilesmith {
namespace {

OpPtr Fuse(const Op& producer, const Op& consumer, const Shape&) {
  const auto* op = dynamic_cast<const ActivationOp*>(&consumer);
  if (op == nullptr || !op->activation().fusable()) return nullptr;
  if (const auto* conv = dynamic_cast<const ConvOp*>(&producer)) {
    ConvWorkload workload = conv->workload();
    if (workload.post.activation.kind != ActivationKind::kNone) return nullptr;
    workload.post.activation = op->activation();
    return std::make_shared<ConvOp>(workload, conv->weights(), conv->bias());
  }
  if (const auto* conv = dynamic_cast<const ConvTransposeOp*>(&producer)) {
    if (conv->activation().kind != ActivationKind::kNone) return nullptr;
    return std::make_shared<ConvTransposeOp>(conv->params(), conv->weights(), conv->bias(), op->activation());
  }
  if (const auto* gemm = dynamic_cast<const GemmOp*>(&producer)) {
    if (gemm->activation().kind != ActivationKind::kNone) return nullptr;
    return std::make_shared<GemmOp>(gemm->weights(), gemm->bias(), op->activation(), gemm->sum());
  }
  if (const auto* scale = dynamic_cast<const ScaleShiftOp*>(&producer)) {
    if (scale->activation().kind != ActivationKind::kNone) return nullptr;
    return std::make_shared<ScaleShiftOp>(scale->scale(), scale->shift(), op->activation());
  }
  return nullptr;
}

}  // namespace

Graph FuseActivation(const Graph& graph) { return FuseIntoProducers(graph, Fuse); }

}  // namespace tilesmith
