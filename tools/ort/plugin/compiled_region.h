// A region as ONNX Runtime runs it: one node of its graph.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "tools/api/tilesmith.h"
#include "tools/ort/plugin/ort_api.h"

namespace tilesmith {

// Runs may overlap: each takes a session of its own, which is kept for later ones.
class CompiledRegion : public OrtNodeComputeInfo {
 public:
  // Of the model's inputs, in its order.
  using Shapes = std::vector<std::vector<int64_t>>;

  // `inputs`: which of the node's inputs each input of the model is, in order; its outputs are the node's.
  // `api` outlives it. Throws Error(kUsage) for a model whose images are not NCHW.
  CompiledRegion(const OrtApi& api, Model model, std::vector<size_t> inputs);
  // One whose batch is open: the first run makes the model, for its own sizes and others of `make`'s.
  CompiledRegion(const OrtApi& api, std::function<Model(const Shapes&)> make, std::vector<size_t> inputs);

 private:
  CompiledRegion(const OrtApi& api, std::vector<size_t> inputs, bool any_size);

  void Run(OrtKernelContext* context);
  void* OutputMemory(OrtKernelContext* context, size_t output, const std::vector<int64_t>& shape) const;
  Session TakeSession(const Shapes& shapes);
  void GiveBack(Session session);

  const OrtApi& api_;
  const std::vector<size_t> inputs_;
  const bool any_size_;
  std::mutex mutex_;
  std::function<Model(const Shapes&)> make_;  // null once the model is there
  std::optional<Model> model_;
  std::vector<Session> idle_;
};

}  // namespace tilesmith
