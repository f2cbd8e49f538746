// A model run for the values of any of its tensors.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph_tuner/executor/executor.h"
#include "ops/onnx/onnx_import.h"

namespace tilesmith {

// With default schedules, and prepared again where inputs have other sizes than those before.
class TensorRunner {
 public:
  // The tensors become outputs of the graph, so that no pass fuses them away. Throws as OnnxFile::Import
  // does.
  TensorRunner(OnnxFile file, std::string source, const std::vector<std::string>& tensors,
               ImportOptions import, DevicePtr machine, const StopFlag* stop);

  const Graph& graph() const { return graph_; }
  // Whether the tensor can be had: its size does not depend on values.
  bool Has(size_t tensor) const { return places_[tensor].has_value(); }
  DataType TypeOf(size_t tensor) const { return graph_.node(graph_.outputs()[*places_[tensor]]).type; }

  // Inputs in the graph's order, plain. Throws Error(kUsage) when their sizes are not the model's,
  // Error(kInterrupted) when it is stopped.
  void Run(const std::vector<Tensor>& inputs);
  // After a run. Precondition: it can be had.
  const Tensor& Value(size_t tensor) const { return outputs_[*places_[tensor]]; }

 private:
  void Prepare();
  bool Fits(const std::vector<Tensor>& inputs) const;

  const OnnxFile file_;
  const std::string source_;
  ImportOptions import_;
  const DevicePtr machine_;
  const StopFlag* const stop_;
  Graph graph_;
  std::vector<std::optional<size_t>> places_;  // of each tensor among the graph's outputs
  std::optional<Executor> executor_;
  std::vector<Tensor> outputs_;
};

}  // namespace tilesmith
