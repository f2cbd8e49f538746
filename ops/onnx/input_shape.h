// The static shape of a graph input: what the file says, completed by the options; and its type.
#pragma once

#include <onnx/onnx_pb.h>

#include "ops/onnx/onnx_import.h"

namespace tilesmith {

// Whether one size may be its whole shape.
bool MayHaveRankOne(const onnx::ValueInfoProto& input);
// Throws Error(kBadModel) naming input, dimension and flag when a size stays unknown, or when the rank given
// differs from the file's.
Shape ResolveInputShape(const onnx::ValueInfoProto& input, const ImportOptions& options);
// Throws Error(kBadModel) naming the input when its elements have no type of ours.
DataType InputType(const onnx::ValueInfoProto& input);

}  // namespace tilesmith
