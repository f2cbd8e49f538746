#include "tools/network/outputs.h"

#include <algorithm>
#include <limits>

#include "graph_tuner/check/compare.h"
#include "ops/graph/reference_run.h"

namespace tilesmith {

std::vector<NamedTensor> ReferenceOutputs(const Graph& graph, const std::vector<Tensor>& inputs,
                                          const StopFlag* stop) {
  std::vector<const Tensor*> pointers;
  pointers.reserve(inputs.size());
  for (const Tensor& input : inputs) pointers.push_back(&input);
  std::vector<Tensor> outputs = RunReference(graph, pointers, stop);
  std::vector<NamedTensor> named;
  named.reserve(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    named.emplace_back(graph.node(graph.outputs()[i]).name, std::move(outputs[i]));
  return named;
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
