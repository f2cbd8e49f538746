// A tail of nodes as the model has them: each is imported when its inputs are known, as constants are.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ops/graph/tail.h"
#include "ops/onnx/node_importer.h"

namespace tilesmith {

struct NodeTailParts {
  std::string name;  // for messages
  int64_t opset = 0;
  SizeLimits limits = {};
  std::shared_ptr<const ModelFunctions> functions;
  std::map<std::string, DataType> narrow_outputs = {};  // as NodeImporterOptions has them
  std::vector<std::string> inputs;                      // names for the graph's outputs
  std::vector<std::string> outputs;                     // tensors: inputs, constants, or nodes' outputs
  std::map<std::string, std::shared_ptr<const Tensor>> constants;
  std::vector<ModelNode> nodes;  // in the order in which they can be computed
};

std::shared_ptr<const Tail> MakeNodeTail(NodeTailParts parts);

}  // namespace tilesmith
