// Batch normalization behind convolutions, taken into their weights before those are quantised.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

namespace tilesmith {

// Where nothing else reads the convolution's output and all parameters are constant floats: the convolution
// then writes the normalization's output. Throws Error(kBadModel) starting with `source` where a parameter
// does not hold what its shape says.
void FoldBatchNorms(onnx::GraphProto& graph, const std::string& source);

}  // namespace tilesmith
