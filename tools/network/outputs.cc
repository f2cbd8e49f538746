#include "tools/network/outputs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "graph_tuner/check/compare.h"
#include "graph_tuner/check/network_check.h"
#include "graph_tuner/executor/end_tensors.h"
#include "ops/graph/reference_run.h"

namespace tilesmith {

std::vector<NamedTensor> Named(const std::vector<std::string>& names, std::vector<Tensor> tensors) {
  std::vector<NamedTensor> named;
  named.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) named.emplace_back(names.at(i), std::move(tensors[i]));
  return named;
}

std::vector<NamedTensor> ReferenceOutputs(const Graph& graph, const std::vector<Tensor>& inputs,
                                          const StopFlag* stop) {
  std::vector<Tensor> outputs = RunReference(graph, PointersTo<const Tensor*>(inputs), stop);
  if (const Tail* tail = graph.tail().get())
    return Named(tail->outputs(), tail->Run(PointersTo<const Tensor*>(outputs), nullptr));
  std::vector<std::string> names;
  for (const Graph::NodeId id : graph.outputs()) names.push_back(graph.node(id).name);
  return Named(names, std::move(outputs));
}

double AllowedBesideOthers(double rounding, double others_difference) {
  const double allowed = AllowedDifference(2 * rounding, kAllowedOutputDifference);
  return std::isfinite(others_difference) ? std::max(allowed, 2 * others_difference) : allowed;
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
