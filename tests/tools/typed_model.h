// Small models of tensors that are not float32.
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

// x, 1x4x8x8 -> y, 1x8x4x4, of float16: a convolution, ReLU, a maximum and another convolution.
inline std::string WriteFloat16Model(const TemporaryDirectory& directory) {
  constexpr int32_t kHalf = onnx::TensorProto::FLOAT16;
  OnnxModel model;
  const auto add_conv = [&](const std::string& from, const std::string& to, int64_t channels) {
    onnx::TensorProto& weights = model.Weight(to + "_w", {8, channels, 3, 3}, kHalf);
    for (int64_t i = 0; i < 72 * channels; ++i)
      weights.add_int32_data(F16(static_cast<float>(i * 37 % 101 - 50) / 256).bits);
    SetInts(model.Node("Conv", {from, to + "_w"}, {to}, to + "_node"), "pads", {1, 1, 1, 1});
  };
  model.Input("x", {1, 4, 8, 8}, kHalf);
  add_conv("x", "a", 4);
  model.Node("Relu", {"a"}, {"r"});
  onnx::NodeProto& pool = model.Node("MaxPool", {"r"}, {"p"});
  SetInts(pool, "kernel_shape", {2, 2}), SetInts(pool, "strides", {2, 2});
  add_conv("p", "y", 8);
  model.Output("y", kHalf);
  const std::string path = directory.File("float16.onnx");
  WriteFile(path, model.Bytes());
  return path;
}

}  // namespace tilesmith
