// Models of 16-bit floats: computed in f32, and given and giving what they say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/base/onnx_type.h"
#include "ops/graph/reference_run.h"
#include "ops/movement/shape_arithmetic.h"
#include "ops/passes/passes.h"
#include "tests/ops/typed_kernel_check.h"
#include "tests/support/ops/onnx_model.h"
#include "tests/support/random.h"

namespace tilesmith {
namespace {

using onnx::TensorProto;
using testing::ElementsAre;

constexpr int32_t kNarrow[] = {TensorProto::FLOAT16, TensorProto::BFLOAT16};

Tensor InType(const Tensor& tensor, DataType type) {
  const Tensor* const inputs[] = {&tensor};
  return CastOp(type).Reference(inputs);
}

Tensor RandomNumbers(const Shape& shape, uint64_t seed, DataType type) {
  Tensor floats(shape);
  FillUniform({floats.floats(), static_cast<size_t>(floats.size())}, seed);
  return InType(floats, type);
}

std::vector<Tensor> RunGraph(const Graph& graph, const std::vector<Tensor>& inputs) {
  const auto pointers = [](const std::vector<Tensor>& tensors) {
    std::vector<const Tensor*> result;
    for (const Tensor& tensor : tensors) result.push_back(&tensor);
    return result;
  };
  std::vector<Tensor> outputs = RunReference(graph, pointers(inputs));
  return graph.tail() ? graph.tail()->Run(pointers(outputs), nullptr) : outputs;
}

void ExpectSameBits(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(actual.type(), expected.type());
  ASSERT_EQ(actual.shape(), expected.shape());
  EXPECT_TRUE(std::equal(actual.raw(), actual.raw() + actual.bytes(), expected.raw()));
}

void AddCast(OnnxModel& model, const std::string& from, const std::string& to, int32_t type) {
  SetInt(model.Node("Cast", {from}, {to}), "to", type);
}

void AddWeight(OnnxModel& model, const std::string& name, const Tensor& values) {
  model.Weight(name, values.shape(), OnnxTypeNumber(values.type()))
      .set_raw_data(values.raw(), static_cast<size_t>(values.bytes()));
}

// Where a classifier has numbers of which types: at its ends, its weights, and what it computes in.
struct Form {
  int32_t ends, weights, inside;
};

// The weights are the same numbers, those of `rounded`, in every form.
OnnxModel Classifier(const Form& form, DataType rounded) {
  OnnxModel model;
  model.Input("x", {1, 4, 6, 6}, form.ends);
  const auto weight = [&](const std::string& name, const Shape& shape, uint64_t seed) {
    AddWeight(model, name, InType(RandomNumbers(shape, seed, rounded), *TypeOfOnnx(form.weights)));
    if (form.weights == form.inside) return name;
    AddCast(model, name, name + "_cast", form.inside);
    return name + "_cast";
  };
  const std::string w = weight("w", {8, 4, 3, 3}, 1), b = weight("b", {8}, 2), p = weight("p", {8, 5}, 3);
  const bool casts = form.ends != form.inside;
  if (casts) AddCast(model, "x", "h", form.inside);
  SetInts(model.Node("Conv", {casts ? "h" : "x", w, b}, {"c"}, "conv"), "pads", {1, 1, 1, 1});
  model.Node("Relu", {"c"}, {"r"}, "relu");
  model.Node("GlobalAveragePool", {"r"}, {"g"}, "mean");
  model.Node("Flatten", {"g"}, {"f"}, "flat");
  model.Node("MatMul", {"f", p}, {casts ? "m" : "y"}, "product");
  if (casts) AddCast(model, "m", "y", form.ends);
  model.Output("y", form.ends);
  return model;
}

TEST(Float16Models, AreTheirTwinsOfF32BetweenTheirEnds) {
  constexpr int32_t kFloat = TensorProto::FLOAT;
  for (const int32_t narrow : kNarrow) {
    const DataType type = *TypeOfOnnx(narrow);
    const OnnxModel twin = Classifier({kFloat, kFloat, kFloat}, type);
    const Tensor x = RandomNumbers({1, 4, 6, 6}, 9, type), wide_x = InType(x, DataType::kF32);
    const Tensor expected = RunGraph(twin.Import(), {wide_x})[0];
    const std::string hash = GraphHash(OptimizeGraph(twin.Import()));
    for (const Form& form : {Form{kFloat, narrow, narrow}, Form{kFloat, narrow, kFloat}}) {
      const Graph graph = Classifier(form, type).Import();
      ExpectSameBits(RunGraph(graph, {wide_x})[0], expected);
      EXPECT_EQ(GraphHash(OptimizeGraph(graph)), hash) << "a Cast is left";
    }
    for (const Form& form : {Form{narrow, narrow, narrow}, Form{narrow, narrow, kFloat}}) {
      const Graph graph = Classifier(form, type).Import();
      EXPECT_EQ(graph.node(graph.GraphInputs()[0]).name, "x");
      EXPECT_EQ(graph.node(graph.outputs()[0]).name, "y");
      ExpectSameBits(RunGraph(graph, {x})[0], InType(expected, type));
      const Graph optimized = OptimizeGraph(graph);
      EXPECT_EQ(optimized.size(), OptimizeGraph(twin.Import()).size() + 2) << "more than a Cast at each end";
      for (Graph::NodeId id = 0; id < optimized.size(); ++id) {
        const bool is_end = optimized.node(id).name == "x" || optimized.node(id).name == "y";
        EXPECT_EQ(optimized.node(id).type, is_end ? type : DataType::kF32) << optimized.node(id).name;
      }
    }
  }
}

// A number that f16 has no room for is none that it overflows to, and neither is it rounded to f16 on its
// way.
TEST(Float16Models, WhatIsCastThereAndBackIsAsItWas) {
  OnnxModel model;
  model.Input("x", {3});
  AddCast(model, "x", "h", TensorProto::FLOAT16);
  model.Node("Mul", {"h", "h"}, {"square"});
  AddCast(model, "square", "y", TensorProto::FLOAT);
  model.Output("y", TensorProto::FLOAT);
  const Tensor x = Stored<float>({3}, {1e4f, 1 + 0x1p-20f, 1e-9f});
  const Tensor y = RunGraph(model.Import(), {x})[0];
  for (int i = 0; i < 3; ++i) EXPECT_EQ(y.floats()[i], x.floats()[i] * x.floats()[i]);
}

TEST(Float16Models, ConstantsInEveryPlace) {
  for (const int32_t narrow : kNarrow) {
    OnnxModel model(18);
    const auto tensor = [&](const std::string& attribute, onnx::NodeProto& node, float value) {
      onnx::AttributeProto* const proto = node.add_attribute();
      proto->set_name(attribute), proto->set_type(onnx::AttributeProto::TENSOR);
      proto->mutable_t()->set_data_type(narrow), proto->mutable_t()->add_dims(1);
      proto->mutable_t()->add_int32_data(narrow == TensorProto::FLOAT16 ? F16(value).bits : Bf16(value).bits);
    };
    model.Input("x", {2, 2}, narrow);
    tensor("value", model.Node("Constant", {}, {"two"}), 2);
    model.Ints("shape", {2, 2});
    tensor("value", model.Node("ConstantOfShape", {"shape"}, {"threes"}), 3);
    SetInt(model.Node("EyeLike", {"x"}, {"one"}), "dtype", narrow);
    model.Ints("whole", {5});
    model.Node("CastLike", {"whole", "x"}, {"five"});
    model.Floats("ten", {1}, {10});
    AddCast(model, "ten", "narrow_ten", narrow);
    model.Node("Mul", {"x", "two"}, {"a"});
    model.Node("Sum", {"a", "threes", "one", "five", "narrow_ten"}, {"y"});
    model.Node("Greater", {"y", "x"}, {"more"});
    model.Output("y", narrow);
    model.Output("more", TensorProto::BOOL);
    const DataType type = *TypeOfOnnx(narrow);
    const std::vector<Tensor> outputs =
        RunGraph(model.Import(), {InType(Stored<float>({2, 2}, {1, 2, 3, 4}), type)});
    ASSERT_EQ(outputs[0].type(), type);
    EXPECT_THAT(ElementsAs<float>(outputs[0]), ElementsAre(21, 22, 24, 27));
    EXPECT_EQ(outputs[1].type(), DataType::kBool);
  }
}

TEST(Float16Models, OutputsThatAreInputsConstantsAndReadInside) {
  OnnxModel model;
  model.Input("x", {2}, TensorProto::FLOAT16);
  AddWeight(model, "c", Stored<F16>({2}, {F16(0x1p-24f), F16(3.0f)}));
  model.Node("Add", {"x", "c"}, {"y"}, "add");
  model.Node("Neg", {"y"}, {"z"});
  model.Node("Split", {"y"}, {"first", "second"});
  model.Node("Identity", {"y"}, {"same"});
  for (const char* name : {"y", "z", "x", "c", "first", "second", "same", "y"})
    model.Output(name, TensorProto::FLOAT16);
  const Graph graph = model.Import();
  const std::vector<Tensor> outputs = RunGraph(graph, {Stored<F16>({2}, {F16(0.0f), F16(4.0f)})});
  std::vector<std::vector<float>> values;
  for (const Tensor& output : outputs) {
    ASSERT_EQ(output.type(), DataType::kF16);
    values.push_back(ElementsAs<float>(output));
  }
  EXPECT_THAT(values, ElementsAre(ElementsAre(0x1p-24f, 7), ElementsAre(-0x1p-24f, -7), ElementsAre(0, 4),
                                  ElementsAre(0x1p-24f, 3), ElementsAre(0x1p-24f), ElementsAre(7),
                                  ElementsAre(0x1p-24f, 7), ElementsAre(0x1p-24f, 7)));
  EXPECT_EQ(graph.node(graph.outputs()[0]).name, "y");
  EXPECT_EQ(graph.node(*graph.Find("add")).type, DataType::kF32);
  const Tensor asked =
      RunGraph(model.Import({.outputs = {"y"}}), {Stored<F16>({2}, {F16(1.0f), F16(4.0f)})})[0];
  EXPECT_THAT(ElementsAs<float>(asked), ElementsAre(1 + 0x1p-24f, 7)) << "what is computed, and not rounded";
}

TEST(Float16Models, InputsThatAreGivenAsConstants) {
  OnnxModel model;
  model.Input("x", {2}, TensorProto::FLOAT16);
  model.Input("c", {2}, TensorProto::FLOAT16);
  model.Node("Add", {"x", "c"}, {"y"});
  model.Output("y", TensorProto::FLOAT16);
  const Tensor ones = Stored<F16>({2}, {F16(1.0f), F16(1.0f)});
  const Graph graph = model.Import({.constants = {{"c", ones}}});
  EXPECT_EQ(graph.GraphInputs().size(), 1u);
  EXPECT_THAT(ElementsAs<float>(RunGraph(graph, {ones})[0]), ElementsAre(2, 2));
}

// Sizes that depend on values: the outputs are the tail's.
TEST(Float16Models, TailsGiveWhatTheModelSays) {
  OnnxModel model;
  model.Input("x", {4}, TensorProto::FLOAT16);
  AddWeight(model, "limit", Stored<F16>({}, {F16(1.0f)}));
  model.Node("Greater", {"x", "limit"}, {"more"});
  model.Node("Compress", {"x", "more"}, {"some"});
  model.Node("Mul", {"some", "some"}, {"squares"});
  AddCast(model, "squares", "wide", TensorProto::FLOAT);
  model.Output("squares", TensorProto::FLOAT16);
  model.Output("wide", TensorProto::FLOAT);
  model.Output("x", TensorProto::FLOAT16);
  const Graph graph = model.Import();
  ASSERT_NE(graph.tail(), nullptr);
  const Tensor x = Stored<F16>({4}, {F16(0.5f), F16(3.0f), F16(1024.0f), F16(-1.0f)});
  const std::vector<Tensor> outputs = RunGraph(graph, {x});
  ASSERT_EQ(outputs[0].type(), DataType::kF16);
  EXPECT_THAT(ElementsAs<float>(outputs[0]), ElementsAre(9, std::numeric_limits<float>::infinity()));
  EXPECT_THAT(ElementsAs<float>(outputs[1]), ElementsAre(9, 1048576)) << "it does not overflow inside";
  ExpectSameBits(outputs[2], x);
}

TEST(Float16Models, BodiesOfBranchesAndLoops) {
  OnnxModel model;
  model.Input("x", {2}, TensorProto::FLOAT16);
  TensorProto& yes = model.Weight("yes", {}, TensorProto::BOOL);
  yes.add_int32_data(1);
  OnnxModel branch;
  AddWeight(branch, "two", Stored<F16>({1}, {F16(2.0f)}));
  branch.Node("Mul", {"x", "two"}, {"doubled"});
  branch.Output("doubled", TensorProto::FLOAT16);
  onnx::NodeProto& node = model.Node("If", {"yes"}, {"d"});
  for (const char* name : {"then_branch", "else_branch"}) {
    onnx::AttributeProto* const body = node.add_attribute();
    body->set_name(name), body->set_type(onnx::AttributeProto::GRAPH);
    *body->mutable_g() = branch.graph();
  }
  OnnxModel loop;
  loop.Input("i", {}, TensorProto::INT64);
  loop.Input("go", {}, TensorProto::BOOL);
  loop.Input("carried", {2}, TensorProto::FLOAT16);
  AddWeight(loop, "one", Stored<F16>({1}, {F16(1.0f)}));
  loop.Node("Add", {"carried", "one"}, {"next"});
  loop.Node("Identity", {"go"}, {"still"});
  loop.Output("still", TensorProto::BOOL);
  loop.Output("next", TensorProto::FLOAT16);
  model.Ints("three", {3});
  onnx::NodeProto& looped = model.Node("Loop", {"three", "yes", "d"}, {"y"});
  onnx::AttributeProto* const body = looped.add_attribute();
  body->set_name("body"), body->set_type(onnx::AttributeProto::GRAPH);
  *body->mutable_g() = loop.graph();
  model.Output("y", TensorProto::FLOAT16);
  EXPECT_THAT(ElementsAs<float>(RunGraph(model.Import(), {Stored<F16>({2}, {F16(1.0f), F16(0.5f)})})[0]),
              ElementsAre(5, 4));
}

// Numbers and scales of f16 are divided in f32, and what is dequantised is f32 until it leaves.
TEST(Float16Models, Quantizers) {
  OnnxModel model(19);
  model.Input("x", {4}, TensorProto::FLOAT16);
  AddWeight(model, "scale", Stored<F16>({}, {F16(0.0999755859375f)}));
  TensorProto& zero = model.Weight("zero", {}, TensorProto::INT8);
  zero.add_int32_data(0);
  model.Node("QuantizeLinear", {"x", "scale", "zero"}, {"q"});
  model.Node("DequantizeLinear", {"q", "scale", "zero"}, {"y"});
  model.Output("q", TensorProto::INT8);
  model.Output("y", TensorProto::FLOAT16);
  const Tensor x = Stored<F16>({4}, {F16(.050018310546875f), F16(-.050018310546875f), F16(2.5f), F16(-.15f)});
  const std::vector<Tensor> outputs = RunGraph(model.Import(), {x});
  EXPECT_THAT(ElementsAs<int>(outputs[0]), ElementsAre(1, -1, 25, -2));
  ASSERT_EQ(outputs[1].type(), DataType::kF16);
  EXPECT_EQ(outputs[1].data<F16>()[2].bits, F16(25 * 0.0999755859375f).bits);
}

TEST(Float16Models, CastKernelsConvertEveryNumber) {
  Tensor all({256, 256}, Layout::Nchw(DataType::kF16));
  for (int64_t i = 0; i < all.size(); ++i) all.data<F16>()[i].bits = static_cast<uint16_t>(i);
  CheckTypedKernel(CastOp(DataType::kF32), {all});
  CheckTypedKernel(CastOp(DataType::kF16), {AnyStored({3, 257, 5, 7}, DataType::kF32, 1)});
  for (const DataType type : {DataType::kF16, DataType::kBf16}) {
    for (const Shape& shape :
         {Shape{}, Shape{1}, Shape{17}, Shape{2, 3, 31}, Shape{2, 0, 3}, Shape{2, 1, 3, 2, 9}}) {
      CheckTypedKernel(CastOp(DataType::kF32), {AnyStored(shape, type, 2)});
      CheckTypedKernel(CastOp(type), {AnyStored(shape, DataType::kF32, 3)});
    }
  }
}

}  // namespace
}  // namespace tilesmith
