#include "graph_tuner/planner/tensor_runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph_tuner/executor/end_tensors.h"
#include "graph_tuner/executor/heuristic_plan.h"
#include "layouts/base/error.h"
#include "layouts/base/visible.h"
#include "ops/passes/passes.h"

namespace tilesmith {

TensorRunner::TensorRunner(OnnxFile file, std::string source, const std::vector<std::string>& tensors,
                           ImportOptions import, DevicePtr machine, const StopFlag* stop)
    : file_(std::move(file)),
      source_(std::move(source)),
      import_(std::move(import)),
      machine_(std::move(machine)),
      stop_(stop),
      places_(tensors.size()) {
  import_.outputs = tensors;
  Prepare();
}

void TensorRunner::Prepare() {
  executor_.reset();
  graph_ = OptimizeGraph(file_.Import(import_));
  const std::vector<Graph::NodeId>& nodes = graph_.outputs();
  for (size_t i = 0; i < places_.size(); ++i) {
    places_[i] = i;
    if (!graph_.tail()) continue;
    // The outputs are what the tail reads, among them those of the tensors that it does not compute.
    const auto found = graph_.Find(VisibleLine(import_.outputs[i]));
    const auto place = found ? std::ranges::find(nodes, *found) : nodes.end();
    places_[i] = place == nodes.end() ? std::nullopt : std::optional<size_t>(place - nodes.begin());
  }
  outputs_.clear();
  for (const Graph::NodeId id : nodes)
    outputs_.emplace_back(graph_.node(id).shape, Layout::Nchw(graph_.node(id).type));
  executor_.emplace(graph_, HeuristicPlan(graph_, machine_->target(), machine_->threads()), machine_, stop_);
}

bool TensorRunner::Fits(const std::vector<Tensor>& inputs) const {
  const std::vector<Graph::NodeId> ids = graph_.GraphInputs();
  return std::ranges::equal(inputs, ids, [&](const Tensor& tensor, Graph::NodeId id) {
    return tensor.shape() == graph_.node(id).shape;
  });
}

void TensorRunner::Run(const std::vector<Tensor>& inputs) {
  if (!Fits(inputs)) {
    const std::vector<Graph::NodeId> ids = graph_.GraphInputs();
    for (size_t i = 0; i < ids.size(); ++i) import_.open_shapes[graph_.node(ids[i]).name] = inputs[i].shape();
    Prepare();
  }
  if (!Fits(inputs)) {
    const std::vector<Graph::NodeId> ids = graph_.GraphInputs();
    const auto [tensor, id] = std::ranges::mismatch(
        inputs, ids,
        [&](const Tensor& given, Graph::NodeId input) { return given.shape() == graph_.node(input).shape; });
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: input \"{}\" is {}, a sample of it {}", source_, graph_.node(*id).name,
                            ShapeToString(graph_.node(*id).shape), ShapeToString(tensor->shape())));
  }
  executor_->Run(PointersTo<const Tensor*>(inputs), PointersTo<Tensor*>(outputs_));
}

}  // namespace tilesmith
