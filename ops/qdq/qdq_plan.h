// Which nodes and tensors of a model become integers.
#pragma once

#include <onnx/onnx_pb.h>

#include <set>
#include <string>
#include <vector>

#include "ops/qdq/proto_index.h"
#include "ops/qdq/qdq_model.h"

namespace tilesmith {

// A node to be quantised, with what is computed in it.
struct QdqUnit {
  int node = 0;
  int activation = -1;  // the Relu or Clip behind it that shares its quantiser
  std::string output;   // of the node, or of its activation
  bool weighted = false;
  int axis = -1;  // of the weights' output channels
};

struct QdqPlan {
  std::vector<QdqUnit> units;  // in the nodes' order
  std::vector<int> movers;     // nodes whose inputs and outputs share a quantiser, likewise
  std::vector<QdqTensor> tensors;
  std::vector<ValueEnds> groups;
  std::vector<KeptNode> kept;
};

// The name people know a node by.
std::string NodeTitle(const onnx::NodeProto& node);
// A constant of floats that is an operand of the node; null for anything else.
const onnx::TensorProto* FloatConstant(const ProtoIndex& index, const std::string& tensor);

// `unknown`: tensors that cannot be quantised, for `reason`. Throws as QdqModel's constructor does.
QdqPlan MakeQdqPlan(const onnx::GraphProto& graph, const std::string& source, const QdqOptions& options,
                    const std::set<std::string>& unknown, const std::string& reason);

}  // namespace tilesmith
