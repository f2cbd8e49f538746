// Which layers of a network to quantise: by what each takes in f32, bf16 and bytes, what tensors cost to be
// converted between those, and what each does to the outputs.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph_tuner/costs/costs.h"
#include "graph_tuner/plan/plan.h"
#include "graph_tuner/problem/error_price.h"
#include "ops/graph/graph.h"

namespace tilesmith {

// What quantising a layer alone does to the network's outputs.
struct QuantizedLayerError {
  std::string layer;                // its node's title (QdqLayer::name)
  std::string output;               // the tensor it writes, its activation's where that is quantised with it
  std::vector<std::string> inputs;  // of its node: tensors
  bool weighted = false;
  double square = 0;  // of the output's error, as OutputDifference::error is
};

struct QuantizedLayers {
  std::vector<QuantizedLayerError> layers;    // in the model's order
  std::map<std::string, std::string> titles;  // of each tensor: of the layer that writes it, or of its node
  // A tensor that is quantised leads to the node of the quantised network that computes it in bytes; both
  // are called as graphs call them.
  std::map<std::string, std::string> byte_nodes;
};

// A network planned in f32, in bf16 where that is to be had, and the same with all layers quantised that can
// be. Which node there computes a tensor in bytes, and quantises it, the layers say (byte_nodes).
struct TypedNetworks {
  const Graph& floats;
  const Plan& float_plan;
  const Plan* bf16_plan;             // or null
  const ErrorSquares& bf16_squares;  // of convolutions (ErrorBudget)
  const Graph& bytes;
  const Plan& byte_plan;
  const QuantizedLayers& layers;
  // What conversions take, each tensor's in the layout that the plan in f32 gives it. Null: per element, as
  // long as those of the plans in the mean.
  CostSource* costs = nullptr;
};

struct TypeChoice {
  std::vector<std::string> keep;  // layers that stay f32 or bf16
  // The output's error is predicted as the sum of the layers' squares; `byte_square` is that of those in
  // bytes.
  double square = 0, byte_square = 0;
  double seconds = 0;                  // predicted
  double bound = 0;                    // no choice within the limit is predicted to take less
  size_t weighted = 0, quantized = 0;  // layers with weights, and those of them in bytes
};

// The fastest choice whose sum of squares is at most `most`: each node is a variable with the options f32,
// bf16 and bytes and their seconds in the plans, a tensor that is read in the other type is charged one
// conversion for each type (AddConversions, layout_problem.h). At each price on squares the solution is
// exact; at the lowest price whose solution keeps to `most` the next best ones are looked at, too (k_best.h),
// since between two prices there may be a faster one. `bound` is the largest of what the prices say about all
// choices within the limit (error_price.h), and equals `seconds` where those looked at leave none out that
// could be faster. One that is slower than a layer's own type everywhere is possible: it is a prediction.
// Source: original.
TypeChoice ChooseTypes(const TypedNetworks& networks, double most);

}  // namespace tilesmith
