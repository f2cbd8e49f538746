// A small model of tensors that are not floats.
#pragma once

#include <string>

#include "tests/support/ops/onnx_model.h"
#include "tests/support/temporary_files.h"

namespace tilesmith {

// x, bytes -> whole = x + 1000 as i32, and large = whether x is 200.
inline std::string WriteTypedModel(const TemporaryDirectory& directory) {
  OnnxModel model;
  model.Input("x", {1, 2, 2, 3}, onnx::TensorProto::UINT8);
  model.Weight("thousand", {1}, onnx::TensorProto::INT32).add_int32_data(1000);
  model.Weight("limit", {}, onnx::TensorProto::UINT8).add_int32_data(200);
  SetInt(model.Node("Cast", {"x"}, {"wide"}), "to", onnx::TensorProto::INT32);
  model.Node("Add", {"wide", "thousand"}, {"whole"});
  model.Node("Equal", {"x", "limit"}, {"large"});
  model.Output("whole");
  model.Output("large");
  const std::string path = directory.File("typed.onnx");
  WriteFile(path, model.Bytes());
  return path;
}

}  // namespace tilesmith
