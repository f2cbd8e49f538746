// Attention as one node, of ONNX Runtime's own operators.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "tests/ops/test_node.h"
#include "tests/support/ops/written_model.h"

namespace tilesmith {
namespace {

// The fused operators against MatMul, Softmax and reshapes.
TEST(FusedAttention, IsWhatItsPartsAre) {
  constexpr int64_t kBatch = 2, kRows = 3, kHeads = 2, kWidth = 4, kEach = kWidth / kHeads;
  const auto wave = [](const Shape& shape, float step) {
    Tensor tensor(shape);
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor.floats()[i] = std::sin(step * static_cast<float>(i + 1));
    return tensor;
  };
  const Tensor x = wave({kBatch, kRows, 5}, 0.7f), w = wave({5, 3 * kWidth}, 0.31f),
               b = wave({3 * kWidth}, 2);
  const Tensor scores_bias = wave({1, kHeads, kRows, kRows}, 1.3f);
  for (const bool masked : {false, true}) {
    OnnxModel fused(17), heads(17), parts(17);
    for (OnnxModel* model : {&fused, &heads, &parts}) {
      model->Input("x", {kBatch, kRows, 5});
      model->Floats("w", w.shape(), F(w));
      model->Floats("b", b.shape(), F(b));
      model->Floats("bias", scores_bias.shape(), F(scores_bias));
      onnx::TensorProto& mask = model->Weight("mask", {kBatch, kRows}, onnx::TensorProto::INT32);
      for (const int value : {1, 1, 0, 1, 0, 1}) mask.add_int32_data(value);
      model->Output("y");
    }
    const auto with_heads = [](onnx::NodeProto& node) {
      node.set_domain("com.microsoft");
      SetInt(node, "num_heads", kHeads);
    };
    const std::string mask = masked ? "mask" : "";
    with_heads(fused.Node("Attention", {"x", "w", "b", mask, "", "bias"}, {"y"}));
    for (OnnxModel* model : {&heads, &parts}) {
      model->Node("MatMul", {"x", "w"}, {"all"});
      model->Ints("sizes", {kWidth, kWidth, kWidth});
      SetInt(model->Node("Split", {"all", "sizes"}, {"q0", "k0", "v0"}), "axis", -1);
      SetInt(model->Node("Split", {"b", "sizes"}, {"bq", "bk", "bv"}), "axis", 0);
    }
    with_heads(heads.Node("MultiHeadAttention", {"q0", "k0", "v0", "b", mask, "bias"}, {"y"}));
    parts.Ints("apart", {kBatch, kRows, kHeads, kEach});
    parts.Ints("together", {kBatch, kRows, kWidth});
    for (const std::string name : {"q", "k", "v"}) {
      parts.Node("Add", {name + "0", "b" + name}, {name + "1"});
      parts.Node("Reshape", {name + "1", "apart"}, {name + "2"});
      const std::vector<int64_t> perm = name == "k" ? IntList{0, 2, 3, 1} : IntList{0, 2, 1, 3};
      SetInts(parts.Node("Transpose", {name + "2"}, {name}), "perm", perm);
    }
    parts.Floats("scale", {}, {1 / std::sqrt(static_cast<float>(kEach))});
    parts.Floats("hidden", {kBatch, 1, 1, kRows}, {0, 0, -1e4f, 0, -1e4f, 0});
    parts.Node("MatMul", {"q", "k"}, {"s0"});
    parts.Node("Mul", {"s0", "scale"}, {"s1"});
    parts.Node("Add", {"s1", "bias"}, {"s2"});
    if (masked) parts.Node("Add", {"s2", "hidden"}, {"s3"});
    parts.Node("Softmax", {masked ? "s3" : "s2"}, {"s"});
    parts.Node("MatMul", {"s", "v"}, {"y0"});
    SetInts(parts.Node("Transpose", {"y0"}, {"y1"}), "perm", {0, 2, 1, 3});
    parts.Node("Reshape", {"y1", "together"}, {"y"});
    const std::vector<float> expected = F(Outputs(parts, {x})[0]);
    for (const OnnxModel* model : {&fused, &heads}) {
      const std::vector<float> actual = F(Outputs(*model, {x})[0]);
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-5);
    }
  }
}

}  // namespace
}  // namespace tilesmith
