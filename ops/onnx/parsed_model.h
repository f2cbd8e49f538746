// A model file as protobuf reads it. The data of large tensors, most of the file, need not go through
// protobuf: it can stay where it is until a tensor takes it.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <string_view>
#include <vector>

#include "ops/onnx/model_parts.h"

namespace tilesmith {

struct ParsedModel {
  onnx::ModelProto proto;
  // Where the raw data of each of the graph's initializers lies in `file`; without bytes where the proto has
  // what there is. Behind the last one, none has any.
  std::vector<PartPlace> data = {};
  ModelPartsPtr file = nullptr;
};

// All of it in the proto. Throws Error(kBadModel) starting with `source` when the bytes are no model with a
// graph that has outputs.
onnx::ModelProto ParseModel(std::string_view bytes, const std::string& source);
// With large data left in the bytes, which outlive the result, or in the file, which stays open. Throw
// likewise; that of a file as ReadModelFile does, too.
ParsedModel ParseApart(std::string_view bytes, const std::string& source);
ParsedModel ParseFileApart(const std::string& path);

// The whole of a message of any type.
bool ParseMessage(std::string_view bytes, google::protobuf::MessageLite& message);

}  // namespace tilesmith
