// Which layers of a network to quantise: by what each takes in floats and in bytes, what tensors cost to be
// converted between those, and what each does to the outputs.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph_tuner/plan/plan.h"
#include "ops/graph/graph.h"
#include "tools/quantize/layer_errors.h"

namespace tilesmith {

// A network planned in floats, and the same with all layers quantised that can be. What computes a tensor in
// bytes is called after the tensor there (kByteNodeSuffix), since it quantises as well.
struct TypedNetworks {
  const Graph& floats;
  const Plan& float_plan;
  const Graph& bytes;
  const Plan& byte_plan;
  const QuantizedLayers& layers;
};

struct TypeChoice {
  std::vector<std::string> keep;  // weighted layers that stay float
  double square = 0;              // of the output's error, predicted: the sum of the quantised layers'
  double seconds = 0;             // predicted
  size_t quantized = 0;           // weighted layers
};

// The fastest choice whose sum of squares is at most `most`, as far as a price on squares finds it: each node
// is a variable with the options float and bytes and their seconds in the plans, a tensor that is read in the
// other type is charged one conversion for each type (AddConversions, layout_problem.h), by the plan's
// seconds per element of conversions; every solution is exact. One that is slower than a layer's own type
// everywhere is possible: it is a prediction. Source: original; prices as in error_price.h.
TypeChoice ChooseTypes(const TypedNetworks& networks, double most);

}  // namespace tilesmith
