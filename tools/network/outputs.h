// Outputs of a network: those that are right, and how far others are from them.
#pragma once

#include <string>
#include <vector>

#include "layouts/base/stop_flag.h"
#include "ops/graph/graph.h"
#include "tools/cli/npz.h"

namespace tilesmith {

// Each under its name. Precondition: as many names.
std::vector<NamedTensor> Named(const std::vector<std::string>& names, std::vector<Tensor> tensors);

// The reference executor's, by name, plain. `inputs` are the graph's, in its order, plain. Throws
// Error(kInterrupted) when it is stopped.
std::vector<NamedTensor> ReferenceOutputs(const Graph& graph, const std::vector<Tensor>& inputs,
                                          const StopFlag* stop);

// How far an output may be from ONNX Runtime's or oneDNN's, which round in their own ways, relative to its
// largest value. More is allowed only where the network amplifies rounding (network_check.h).
constexpr double kAllowedOutputDifference = 1e-3;
// That, or what roundings become in this network: eight times the sum of both sides' own, ours being
// `rounding`, or, where a comparison decides by them, twice what the others differ from themselves when they
// compute in another order.
double AllowedBesideOthers(double rounding, double others_difference = 0);

// Largest difference of any float output to the one in its place, relative to that one's largest value;
// infinite when anything is NaN or infinite on one side only. Plain tensors.
double LargestDifference(const std::vector<NamedTensor>& outputs, const std::vector<NamedTensor>& expected);

}  // namespace tilesmith
