// A node of a model file as the op importers want it.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "ops/base/op_registry.h"

namespace tilesmith {

// Attributes in their typed form; what opset 6 said with attributes that opset 7 dropped (broadcast, axis,
// is_test) is translated. Throws Error(kBadModel) with the reason when an attribute's type is unsupported or
// a legacy broadcast cannot be expressed.
NodeSpec MakeNodeSpec(const onnx::NodeProto& proto, std::string name, int64_t opset,
                      std::vector<NodeInput> inputs);

// The reverse for one attribute.
void SetAttribute(const std::string& name, const Attribute& value, onnx::AttributeProto& proto);

}  // namespace tilesmith
