#include "ops/passes/passes.h"

namespace tilesmith {

const std::vector<Pass>& Passes() {
  static const std::vector<Pass> passes = {
      {"fold_constants", FoldConstants},       {"canonicalize", Canonicalize},
      {"remove_identities", RemoveIdentities}, {"fold_pad", FoldPad},
      {"fold_scale_shift", FoldScaleShift},    {"merge_scale_shifts", MergeScaleShifts},
      {"fuse_activation", FuseActivation},     {"fuse_residual", FuseResidual},
      {"fuse_activation", FuseActivation},  // again: behind the residuals
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
