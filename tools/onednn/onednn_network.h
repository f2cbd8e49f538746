// The baseline for a whole network: its nodes' oneDNN twins connected, each conv in the layouts oneDNN likes
// best, everything else in the layout its input arrives in, reorders only where neighbours disagree.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "layouts/base/stop_flag.h"
#include "ops/base/op.h"
#include "ops/graph/end_layouts.h"
#include "ops/graph/graph.h"
#include "tools/onednn/onednn.h"

namespace tilesmith {

// Which algorithm a conv shall use; where oneDNN refuses it, direct is used instead.
using OneDnnChoice = std::function<OneDnnAlgorithm(const ConvWorkload&)>;

// Not thread-safe. See onednn.h about threads.
class OneDnnNetwork {
 public:
  // For a graph as the executor runs it: post-ops fused, constants folded. Where oneDNN has no primitive, a
  // kernel of ours for `cpu` runs between its own. Floats are stored and multiplied as `floats`, f32 or bf16,
  // from the first conv to the last node that oneDNN or we have a kernel of that type for; the network's own
  // inputs and outputs stay f32. Null when a node has neither, with its name and the reason in *refusal when
  // given.
  static std::unique_ptr<OneDnnNetwork> Create(const Graph& graph, const OneDnnChoice& choice,
                                               const Target& cpu, const EndLayouts& ends = {},
                                               std::string* refusal = nullptr,
                                               DataType floats = DataType::kF32);

  // Numbered as graph.GraphInputs() and graph.outputs(); plain tensors.
  void SetInput(int index, const Tensor& plain) { nodes_[inputs_[index]].twin->SetInput(0, plain); }
  Tensor GetOutput(int index) const { return outputs_[index]->GetOutput(); }
  // Inputs and outputs are in the end layouts: the reorders from and to them are part of it.
  // Throws Error(kInterrupted) at the next node once `stop` is set.
  void Run(const StopFlag* stop = nullptr);

  struct Step {
    std::string name;  // of the graph's node
    std::unique_ptr<OneDnnPrimitive> twin;
  };
  // In execution order, one for each node: to time them in context.
  const std::vector<Step>& nodes() const { return nodes_; }
  // Types of the nodes that kernels of ours compute, in order.
  std::vector<std::string> GuestTypes() const;

 private:
  std::vector<OpPtr> ops_;  // kernels may refer to them
  std::vector<Step> nodes_;
  std::vector<std::unique_ptr<OneDnnPrimitive>> outputs_;
  std::vector<Graph::NodeId> inputs_;
};

// The twin of any op but a conv (see OneDnnConv, which has algorithms to choose from), for inputs of these
// shapes, all of them and the output in `layout`; dense layers and softmax ignore it and are plain. Null with
// the reason in *refusal when oneDNN has no such primitive, among them views, which cost nothing on either
// side.
std::unique_ptr<OneDnnPrimitive> MakeOneDnnTwin(const Op& op, std::span<const Shape> inputs,
                                                const Layout& layout, std::string* refusal = nullptr);

}  // namespace tilesmith
