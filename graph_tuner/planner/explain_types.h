// What a layer takes, and does to the outputs, in each type.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph_tuner/planner/plan_network.h"

namespace tilesmith {

struct TypedNode {
  std::string type;                         // "float", or "int8"
  std::optional<double> node_seconds = {};  // of the best plan, by the log; none where it has no such node
  double network_seconds = 0;               // of that plan, conversions around the node in it
  double output_error = 0;                  // measured, relative to f32
  bool is_asked = false;                    // as the request's model has it
};

// What the network that is quantised so, or with null in floats, calls a layer which is known by the name of
// its node or tensor in the model: another name only where it is computed in bytes.
std::string NodeOfLayer(const NetworkSource& network, const QuantizationPtr& quantization,
                        const std::string& name);

// A layer that can be quantised both ways, all others as the request has them: in floats, where it has no
// quantization, else as that says. Each way is solved, exactly, and its plan run on the network's samples.
// `node` is the name of its node or tensor in the model; empty for one that cannot be quantised. Of the
// request only what is planned counts, not the effort. Precondition: the request has a quantization, or the
// network can be calibrated.
std::vector<TypedNode> ExplainTypes(const PlanRequest& request, const std::string& node,
                                    const WorkSinks& sinks);

}  // namespace tilesmith
