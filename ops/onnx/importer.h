// From a parsed model to a Graph.
#pragma once

#include <onnx/onnx_pb.h>

#include <set>
#include <string>

#include "ops/onnx/onnx_import.h"
#include "ops/onnx/parsed_model.h"
#include "ops/onnx/tensor_proto.h"

namespace tilesmith {

// The version of the default domain; 0 when the model names none.
int64_t DefaultOpset(const onnx::ModelProto& model);

// The body of OnnxFile::Parse; see there for errors. Constants leave the model as they are read, so that all
// weights are never held twice.
OnnxFile TakeModel(ParsedModel model, const std::string& source, TensorReader reader);

// Locations of data in other parts, each once.
std::set<std::string> PartsOf(onnx::ModelProto& model);
// Data of initializers, constants and bodies in other parts becomes the model's own. Throws Error(kBadModel)
// starting with `source` and naming all that cannot be had.
void EmbedParts(onnx::ModelProto& model, const std::string& source, TensorReader reader);

}  // namespace tilesmith
