// From a parsed model to a Graph.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "ops/onnx/onnx_import.h"

namespace tilesmith {

// Throws Error(kBadModel) starting with `source` when the bytes are no model with a graph that has outputs.
onnx::ModelProto ParseModel(std::string_view bytes, const std::string& source);

// The version of the default domain; 0 when the model names none.
int64_t DefaultOpset(const onnx::ModelProto& model);

// The body of ImportOnnxBytes; see there for errors. Initializers leave the model as they are read, so that
// all weights are never held twice.
Graph ImportModel(onnx::ModelProto model, const std::string& source, const ImportOptions& options);

}  // namespace tilesmith
