// What an executor is given and gives, as its plan lays it out.
#pragma once

#include <vector>

#include "layouts/transform.h"
#include "ops/graph/end_layouts.h"

namespace tilesmith {

inline Tensor InLayout(const Tensor& tensor, const Layout& layout) {
  return tensor.layout() == layout ? tensor : TransformGeneric(tensor, layout);
}

// Tensors in plain layout: those that have it themselves, which must outlive this, copies of the others.
class PlainTensors {
 public:
  explicit PlainTensors(const std::vector<Tensor>& tensors) {
    copies_.reserve(tensors.size());
    for (const Tensor& tensor : tensors) {
      const Layout plain = Layout::Nchw(tensor.type());
      pointers_.push_back(tensor.layout() == plain ? &tensor
                                                   : &copies_.emplace_back(TransformGeneric(tensor, plain)));
    }
  }
  PlainTensors(const PlainTensors&) = delete;
  PlainTensors& operator=(const PlainTensors&) = delete;

  const std::vector<const Tensor*>& pointers() const { return pointers_; }

 private:
  std::vector<Tensor> copies_;
  std::vector<const Tensor*> pointers_;
};

// The graph's inputs, in its order, in the layout that the plan wants them in. Precondition: they are plain.
inline std::vector<Tensor> InputsIn(const Layout& layout, const Graph& graph,
                                    const std::vector<Tensor>& plain) {
  std::vector<Tensor> tensors;
  const std::vector<Graph::NodeId> ids = graph.GraphInputs();
  tensors.reserve(plain.size());
  for (size_t i = 0; i < plain.size(); ++i)
    tensors.push_back(InLayout(plain[i], EndLayout(graph.node(ids[i]), layout)));
  return tensors;
}

// For its outputs.
inline std::vector<Tensor> OutputTensors(const Layout& layout, const Graph& graph) {
  std::vector<Tensor> tensors;
  for (const Graph::NodeId id : graph.outputs())
    tensors.emplace_back(graph.node(id).shape, EndLayout(graph.node(id), layout));
  return tensors;
}

// As Executor::Run takes them: const Tensor* or Tensor*.
template <typename Pointer, typename Tensors>
std::vector<Pointer> PointersTo(Tensors& tensors) {
  std::vector<Pointer> pointers;
  pointers.reserve(tensors.size());
  for (auto& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}

}  // namespace tilesmith
