// An older model's nodes in the words of opset 13, the first that has QuantizeLinear per channel.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

namespace tilesmith {

constexpr int64_t kQdqOpset = 13;

// Attributes that became inputs become those, Upsample becomes Resize, and a Softmax over several axes one
// over flattened ones; whatever else a model of opset 7 to 12 says means the same in 13. Bodies of loops and
// branches too. Models of opset 13 and more keep their nodes. Initializers are inputs no more. Throws
// Error(kBadModel) starting with `source` for older ones, and naming the node that opset 13 cannot say.
void RaiseOpset(onnx::ModelProto& model, const std::string& source);

}  // namespace tilesmith
