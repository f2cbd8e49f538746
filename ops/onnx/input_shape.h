// The static shape of a graph input: what the file says, completed by the options.
#pragma once

#include <onnx/onnx_pb.h>

#include "ops/onnx/onnx_import.h"

namespace tilesmith {

// Throws Error(kBadModel) naming input, dimension and flag when a size stays unknown, when the rank given
// differs from the file's, or when the elements are not floats.
Shape ResolveInputShape(const onnx::ValueInfoProto& input, const ImportOptions& options);

}  // namespace tilesmith
