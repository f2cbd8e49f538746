#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/qdq/qdq_model.h"
#include "tests/support/ops/onnx_model.h"
#include "tests/support/random.h"
#include "tests/support/refusal.h"

namespace tilesmith {
namespace {

using testing::HasSubstr;

OnnxModel TwoConvs(uint64_t seed) {
  OnnxModel model;
  model.Input("x", {1, 2, "height", 6});
  for (const std::string name : {"a", "b"}) {
    std::vector<float> weights(2 * 2 * 3 * 3);
    FillUniform(weights, seed++);
    model.Floats(name + "_w", {2, 2, 3, 3}, weights);
    model.Node("Conv", {name == "a" ? "x" : "a", name + "_w"}, {name}, name + "_node");
  }
  model.Output("b");
  return model;
}

ModelQuantization Calibrated(const OnnxModel& model) {
  const QdqModel quantizable(model.Bytes(), "net.onnx", {});
  ModelQuantization quantization;
  quantization.model_hash = quantizable.hash();
  float scale = 0.5f;
  for (const QdqTensor& tensor : quantizable.tensors())
    quantization.tensors[tensor.name] = {.scale = scale *= 0.5f, .zero_point = 100};
  quantization.calibration = "by hand";
  return quantization;
}

TEST(ModelQuantizationTest, WritesWhatTheQuantisedModelIs) {
  const OnnxModel model = TwoConvs(1);
  const ModelQuantization quantization = Calibrated(model);
  QdqModel quantizable(model.Bytes(), "net.onnx", {});
  const std::vector<TensorQuantizer> quantizers = QuantizersOf(quantization, "net.onnx", quantizable);
  std::map<std::string, std::string> metadata;
  metadata["tilesmith.calibration"] = "by hand";
  EXPECT_EQ(QuantizedBytes(model.Bytes(), "net.onnx", quantization).bytes,
            quantizable.Write(quantizers, metadata).bytes);
}

// A mixture is what was calibrated with more nodes in floats.
TEST(ModelQuantizationTest, MoreNodesMayStayFloat) {
  const OnnxModel model = TwoConvs(1);
  ModelQuantization quantization = Calibrated(model);
  quantization.options.keep = {"a_node"};
  const std::vector<std::string> types =
      SummarizeOnnx(QuantizedBytes(model.Bytes(), "net.onnx", quantization).bytes, "net.onnx").op_types;
  // The second one's input and output; those and its weights.
  EXPECT_EQ(std::ranges::count(types, "QuantizeLinear"), 2);
  EXPECT_EQ(std::ranges::count(types, "DequantizeLinear"), 3);
  quantization.tensors.erase("b");
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { QuantizedBytes(model.Bytes(), "net.onnx", quantization); }),
              HasSubstr("no scale for the tensor \"b\""));
}

// Sizes of inputs are no part of a model's hash, weights are.
TEST(ModelQuantizationTest, AnotherModelIsRefused) {
  OnnxModel model = TwoConvs(1);
  const ModelQuantization quantization = Calibrated(model);
  model.graph()
      .mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(2)
      ->set_dim_value(9);
  EXPECT_NO_THROW(QuantizedBytes(model.Bytes(), "net.onnx", quantization));
  EXPECT_THAT(
      Refusal(ErrorCode::kUsage, [&] { QuantizedBytes(TwoConvs(9).Bytes(), "net.onnx", quantization); }),
      HasSubstr("scales and zero points are of another model"));
}

}  // namespace
}  // namespace tilesmith
