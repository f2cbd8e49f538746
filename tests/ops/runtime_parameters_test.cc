// Parameters of nodes that are computed, not constant.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "tests/ops/test_node.h"
#include "tests/support/ops/written_model.h"

namespace tilesmith {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A node whose parameters are known against the same node whose parameters are inputs, which must be nodes of
// the graph and no tail.
struct Parameters {
  std::string op_type;
  int64_t opset;
  std::vector<Tensor> inputs;
  std::function<void(onnx::NodeProto&)> attributes = {};
};

OnnxModel ModelOf(const Parameters& given, bool constant) {
  OnnxModel model(given.opset);
  std::vector<std::string> names;
  for (size_t i = 0; i < given.inputs.size(); ++i) {
    const Tensor& tensor = given.inputs[i];
    names.push_back(fmt::format("in{}", i));
    const bool floats = tensor.type() == DataType::kF32;
    if (i > 0 && constant && floats) {
      model.Floats(names[i], tensor.shape(), F(tensor));
    } else if (i > 0 && (constant || given.op_type == "Pad") && !floats) {
      model.Ints(names[i], I(tensor));
    } else {
      const std::vector<OnnxDim> dims(tensor.shape().begin(), tensor.shape().end());
      model.Input(names[i], dims, floats ? onnx::TensorProto::FLOAT : onnx::TensorProto::INT64);
    }
  }
  onnx::NodeProto& node = model.Node(given.op_type, names, {"y"});
  if (given.attributes) given.attributes(node);
  model.Output("y");
  return model;
}

TEST(RuntimeParameters, AreInputsOfNodes) {
  const Tensor image = Counting({2, 4, 3, 2}), four = Floats({4}, {0.5f, -1, 2, 3}),
               more = Floats({4}, {1, 2, -3, 0.25f}), rows = Counting({3, 4});
  const std::vector<Parameters> nodes = {
      {"PRelu", 16, {Floats({1, 4, 1, 1}, {-1, 2, -3, 4}), Floats({4, 1, 1}, {0.5f, -1, 2, 3})}},
      {"LayerNormalization", 17, {rows, four, more}},
      {"LayerNormalization", 17, {image, Counting({3, 2})}, [](auto& node) { SetInt(node, "axis", 2); }},
      {"RMSNormalization", 23, {rows, four}},
      {"InstanceNormalization", 6, {image, four, more}},
      {"GroupNormalization", 21, {image, four, more}, [](auto& node) { SetInt(node, "num_groups", 2); }},
      {"GroupNormalization",
       18,
       {image, Floats({2}, {3, -1}), Floats({2}, {1, 2})},
       [](auto& node) { SetInt(node, "num_groups", 2); }},
      {"BatchNormalization", 15, {image, four, more, four, Floats({4}, {1, 2, 3, 4})}},
      {"Gemm", 13, {rows, Counting({4, 2}), Floats({2}, {5, -5})}},
      {"Gemm", 13, {rows, Counting({4, 2}), Counting({3, 2})}},
      {"Gemm",
       13,
       {rows, Counting({2, 4}), Floats({3, 1}, {1, 2, 3})},
       [](auto& node) { SetInt(node, "transB", 1); }},
      {"Clip", 13, {rows, Floats({}, {3}), Floats({}, {9})}},
      {"Trilu", 14, {rows, Ints({1}, {1})}},
      {"Pad", 13, {rows, Ints({4}, {1, 0, 0, 2}), Floats({1}, {-7})}},
      {"Pow", 15, {rows, Ints({1}, {2})}},
  };
  for (const Parameters& given : nodes) {
    SCOPED_TRACE(given.op_type);
    const OnnxModel inputs = ModelOf(given, false);
    EXPECT_EQ(inputs.Import().tail(), nullptr);
    std::vector<Tensor> all = given.inputs;
    if (given.op_type == "Pad") all.erase(all.begin() + 1);
    const Tensor expected = Outputs(ModelOf(given, true), {given.inputs[0]})[0],
                 actual = Outputs(inputs, all)[0];
    ASSERT_EQ(actual.shape(), expected.shape());
    for (int64_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(actual.floats()[i], expected.floats()[i], 1e-5 + 1e-5 * std::abs(expected.floats()[i]));
    }
  }
  EXPECT_THAT(ImportError(ModelOf({"CumSum", 14, {rows, Ints({}, {1})}}, false)),
              AllOf(HasSubstr("CumSum"), HasSubstr("must be constant")));
  EXPECT_THAT(ImportError(ModelOf({"LayerNormalization", 17, {rows, Counting({3})}}, false)),
              HasSubstr("does not fit"));
  EXPECT_THAT(ImportError(ModelOf({"BatchNormalization", 15, {image, four, four, four, rows}}, false)),
              HasSubstr("values for 4 channels"));
}

}  // namespace
}  // namespace tilesmith
