#include "ops/passes/passes.h"

namespace tilesmith {

const std::vector<Pass>& Passes() {
  static const std::vector<Pass> passes = {
      {"fold_constants", FoldConstants},
      {"canonicalize", Canonicalize},
      {"remove_identities", RemoveIdentities},
      {"fold_space_to_depth", FoldSpaceToDepth},
      {"fold_pad", FoldPad},
      {"recognize_gates", RecognizeGates},
      {"merge_gated_sums", MergeGatedSums},
      {"fold_scale_shift", FoldScaleShift},
      {"merge_scale_shifts", MergeScaleShifts},
      {"remove_identities", RemoveIdentities},  // again: scales that cancelled out
      {"fuse_activation", FuseActivation},
      {"push_scale_shift", PushScaleShift},
      {"fuse_residual", FuseResidual},
      {"fuse_activation", FuseActivation},  // again: behind the residuals
      {"lower_conv_transpose", LowerConvTranspose},
      {"chain_concats", ChainConcats},
  };
  return passes;
}

Graph OptimizeGraph(const Graph& graph) {
  Graph result = graph;
  for (const Pass& pass : Passes()) result = pass.run(result);
  return result;
}

}  // namespace tilesmith
