#include "tools/network/outputs.h"

#include <algorithm>
#include <limits>

#include "graph_tuner/check/compare.h"
#include "graph_tuner/check/network_check.h"
#include "ops/graph/reference_run.h"

namespace tilesmith {

std::vector<NamedTensor> ModelOutputs(const std::vector<std::string>& names, const Tail* tail,
                                      std::vector<Tensor> values, const OpMachine* machine) {
  if (tail != nullptr) {
    std::vector<const Tensor*> pointers;
    pointers.reserve(values.size());
    for (const Tensor& value : values) pointers.push_back(&value);
    return ModelOutputs(tail->outputs(), nullptr, tail->Run(pointers, machine), machine);
  }
  std::vector<NamedTensor> named;
  named.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) named.emplace_back(names[i], std::move(values[i]));
  return named;
}

std::vector<NamedTensor> ReferenceOutputs(const Graph& graph, const std::vector<Tensor>& inputs,
                                          const StopFlag* stop) {
  std::vector<const Tensor*> pointers;
  pointers.reserve(inputs.size());
  for (const Tensor& input : inputs) pointers.push_back(&input);
  std::vector<Tensor> outputs = RunReference(graph, pointers, stop);
  std::vector<std::string> names;
  for (const Graph::NodeId id : graph.outputs()) names.push_back(graph.node(id).name);
  return ModelOutputs(names, graph.tail().get(), std::move(outputs), nullptr);
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
