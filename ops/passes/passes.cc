#include "ops/passes/passes.h"

#include <algorithm>

#include "ops/base/op.h"
#include "ops/conv/conv.h"
#include "ops/conv/conv_transpose.h"
#include "ops/dense/gemm.h"
#include "ops/dense/matmul.h"
#include "ops/dense/softmax.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/movement/concat.h"
#include "ops/movement/pad.h"
#include "ops/movement/transpose.h"
#include "ops/quantize/quantize.h"

namespace tilesmith {
namespace {

template <typename... Ops>
bool IsAny(const Op& op) {
  return ((dynamic_cast<const Ops*>(&op) != nullptr) || ...);
}

bool MayBeIdentity(const Op& op) {
  const auto* activation = dynamic_cast<const ActivationOp*>(&op);
  if (activation != nullptr) return activation->activation().kind == ActivationKind::kNone;
  return op.IsView() || IsAny<PadOp, ScaleShiftOp, ConcatOp, SumOp>(op);
}

bool LooksAt(const Pass& pass, const Graph& graph) {
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    if (pass.looks_at(*graph.node(id).op)) return true;
  }
  return false;
}

}  // namespace

const std::vector<Pass>& Passes() {
  static const std::vector<Pass> passes = {
      {"fuse_quantized", FuseQuantized, IsAny<QuantizeLinearOp>},
      {"fold_constants", FoldConstants, IsAny<ConstantOp>},
      {"canonicalize", Canonicalize, IsAny<PReluOp, TransposeOp>},
      {"remove_identities", RemoveIdentities, MayBeIdentity},
      {"fold_space_to_depth", FoldSpaceToDepth, IsAny<ConcatOp>},
      {"fold_pad", FoldPad, IsAny<PadOp>},
      {"recognize_functions", RecognizeFunctions, IsAny<BinaryOp>},
      {"recognize_gates", RecognizeGates, IsAny<BinaryOp>},
      {"merge_gated_sums", MergeGatedSums, IsAny<BinaryOp>},
      {"fold_row_constants", FoldRowConstants, IsAny<GemmOp>},
      {"fold_scale_shift", FoldScaleShift, IsAny<ScaleShiftOp>},
      {"merge_scale_shifts", MergeScaleShifts, IsAny<ScaleShiftOp>},
      // Again: scales that cancelled out.
      {"remove_identities", RemoveIdentities, MayBeIdentity},
      {"fuse_matmul", FuseMatMul, IsAny<MatMulOp>},
      {"recognize_attention", RecognizeAttention, IsAny<SoftmaxOp>},
      {"fuse_activation", FuseActivation, IsAny<ConvOp, ConvTransposeOp, GemmOp, ScaleShiftOp>},
      {"push_scale_shift", PushScaleShift, IsAny<ScaleShiftOp>},
      {"fuse_residual", FuseResidual, IsAny<ConvOp, GemmOp>},
      // Again: behind the residuals.
      {"fuse_activation", FuseActivation, IsAny<ConvOp, ConvTransposeOp, GemmOp, ScaleShiftOp>},
      {"fuse_quantizers", FuseQuantizers, IsAny<QuantizeLinearOp>},
      {"lower_conv_transpose", LowerConvTranspose, IsAny<ConvTransposeOp>},
      {"lower_dense", LowerDense, IsAny<GemmOp>},
      {"chain_concats", ChainConcats, IsAny<ConcatOp>},
  };
  return passes;
}

Graph OptimizeGraph(Graph graph) {
  graph = DropDeadNodes(std::move(graph));
  for (const Pass& pass : Passes()) {
    if (LooksAt(pass, graph)) graph = pass.run(graph);
  }
  return graph;
}

}  // namespace tilesmith
