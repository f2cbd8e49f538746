#include "tools/network/outputs.h"

#include <algorithm>
#include <limits>

#include "graph_tuner/check/compare.h"
#include "graph_tuner/check/network_check.h"
#include "graph_tuner/executor/end_tensors.h"
#include "ops/graph/reference_run.h"

namespace tilesmith {

std::vector<NamedTensor> ModelOutputs(const std::vector<std::string>& names, const Tail* tail,
                                      std::span<const Tensor* const> values, const OpMachine* machine) {
  std::vector<NamedTensor> named;
  if (tail != nullptr) {
    std::vector<Tensor> tensors = tail->Run(values, machine);
    for (size_t i = 0; i < tensors.size(); ++i) named.emplace_back(tail->outputs()[i], std::move(tensors[i]));
  } else {
    for (size_t i = 0; i < values.size(); ++i) named.emplace_back(names[i], *values[i]);
  }
  return named;
}

std::vector<NamedTensor> ReferenceOutputs(const Graph& graph, const std::vector<Tensor>& inputs,
                                          const StopFlag* stop) {
  std::vector<const Tensor*> pointers;
  pointers.reserve(inputs.size());
  for (const Tensor& input : inputs) pointers.push_back(&input);
  const std::vector<Tensor> outputs = RunReference(graph, pointers, stop);
  std::vector<std::string> names;
  for (const Graph::NodeId id : graph.outputs()) names.push_back(graph.node(id).name);
  return ModelOutputs(names, graph.tail().get(), PlainTensors(outputs).pointers(), nullptr);
}

double AllowedBesideOthers(double rounding) {
  return AllowedDifference(2 * rounding, kAllowedOutputDifference);
}

double LargestDifference(const std::vector<NamedTensor>& outputs, const std::vector<NamedTensor>& expected) {
  double largest = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorDifference difference = CompareTensors(outputs[i].second, expected.at(i).second);
    if (difference.one_sided >= 0) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, difference.relative);
  }
  return largest;
}

}  // namespace tilesmith
