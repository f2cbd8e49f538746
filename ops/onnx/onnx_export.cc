#include "ops/onnx/onnx_export.h"

#include <fmt/format.h>

#include "ops/onnx/node_spec.h"
#include "ops/onnx/tensor_proto.h"

namespace tilesmith {
namespace {

void AddNode(const ListedNode& node, onnx::GraphProto& graph) {
  onnx::NodeProto& proto = *graph.add_node();
  proto.set_name(node.name);
  proto.set_op_type(node.op_type);
  proto.add_output(node.name);
  for (const std::string& input : node.inputs) proto.add_input(input);
  for (size_t i = 0; i < node.constants.size(); ++i) {
    const std::string name = fmt::format("{}.constant{}", node.name, i);
    proto.add_input(name);
    SetTensor(name, *node.constants[i], *graph.add_initializer());
  }
  for (const auto& [name, value] : node.attributes) SetAttribute(name, value, *proto.add_attribute());
}

}  // namespace

ModelBytes OnnxBytes(const ModelListing& listing, const DataPlacement& placement) {
  onnx::ModelProto model = NewModelProto(listing.name, listing.opset);
  onnx::GraphProto& graph = *model.mutable_graph();
  for (const auto& [name, shape] : listing.inputs) SetFloatInfo(name, shape, *graph.add_input());
  for (const auto& [name, shape] : listing.outputs) SetFloatInfo(name, shape, *graph.add_output());
  for (const ListedNode& node : listing.nodes) AddNode(node, graph);
  return SerializeWithData(std::move(model), placement);
}

}  // namespace tilesmith
