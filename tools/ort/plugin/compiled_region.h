// A region as ONNX Runtime runs it: one node of its graph.
#pragma once

#include <mutex>
#include <vector>

#include "tools/api/tilesmith.h"
#include "tools/ort/plugin/ort_api.h"

namespace tilesmith {

// Runs may overlap: each takes a session of its own, which is kept for later ones.
class CompiledRegion : public OrtNodeComputeInfo {
 public:
  // `inputs`: which of the node's inputs each input of the model is, in order; its outputs are the node's.
  // `api` outlives it. Throws Error(kUsage) for a model whose images are not NCHW.
  CompiledRegion(const OrtApi& api, Model model, std::vector<size_t> inputs);

 private:
  void Run(OrtKernelContext* context);
  Session TakeSession();
  void GiveBack(Session session);

  const OrtApi& api_;
  const Model model_;
  const std::vector<size_t> inputs_;
  std::mutex mutex_;
  std::vector<Session> idle_;
};

}  // namespace tilesmith
