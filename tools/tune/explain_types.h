// What a layer takes, and does to the outputs, in each type: `tilesmith explain NODE` of a network that may
// have some.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/cli/graph_tuning.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"

namespace tilesmith {

struct TypedNode {
  std::string type;                         // "float", or "int8"
  std::optional<double> node_seconds = {};  // of the best plan, by the log; none where it has no such node
  double network_seconds = 0;               // of that plan, conversions around the node in it
  double output_error = 0;                  // measured, relative to f32
  bool is_asked = false;                    // as the request's model has it
};

// What the network that LoadModel gives calls a layer which is known by the name of its node or tensor in the
// model: another name only where it is computed in bytes.
std::string NodeOfLayer(const ModelOptions& model, const std::string& name);

// A layer that can be quantised both ways, all others as the arguments' model has them: in floats, where it
// has no quantization, else as that says. Each way is solved, exactly, and its plan run on the calibration's
// inputs. `node` is the name of its node or tensor in the model; empty for one that cannot be quantised.
// Precondition: the model has a quantization, or can be calibrated.
std::vector<TypedNode> ExplainTypes(const GraphTuningArguments& arguments, const std::string& node,
                                    const WorkSinks& sinks);

void AddTypedNodes(Report& report, const std::vector<TypedNode>& nodes);

}  // namespace tilesmith
