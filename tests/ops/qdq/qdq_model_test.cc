// Models with QuantizeLinear and DequantizeLinear: which nodes, which names, and the same function.
#include "ops/qdq/qdq_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "layouts/base/error.h"
#include "layouts/transform.h"
#include "ops/graph/reference_run.h"
#include "ops/qdq/prepare_model.h"
#include "tests/support/ops/onnx_model.h"
#include "tests/support/random.h"
#include "tests/support/refusal.h"

namespace tilesmith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

std::vector<float> Uniform(int64_t count, uint64_t seed) {
  std::vector<float> values(count);
  FillUniform(values, seed);
  return values;
}

void AddConv(OnnxModel& model, const std::string& input, const std::string& output, int64_t channels = 2,
             bool bias = true) {
  const std::string weights = output + "_w";
  model.Floats(weights, {channels, 2, 3, 3}, Uniform(channels * 18, channels + output.size()));
  std::vector<std::string> inputs = {input, weights};
  if (bias) {
    model.Floats(output + "_b", {channels}, Uniform(channels, 3));
    inputs.push_back(output + "_b");
  }
  SetInts(model.Node("Conv", inputs, {output}, output + "_node"), "pads", {1, 1, 1, 1});
}

std::vector<std::string> Names(const std::vector<QdqTensor>& tensors) {
  std::vector<std::string> names;
  for (const QdqTensor& tensor : tensors) names.push_back(tensor.name);
  return names;
}

int GroupOf(const QdqModel& model, const std::string& name) {
  const auto found = std::ranges::find(model.tensors(), name, &QdqTensor::name);
  return found == model.tensors().end() ? -1 : found->group;
}

QdqModel Quantizable(const OnnxModel& model, const QdqOptions& options = {}) {
  return {model.Bytes(), "net.onnx", options};
}

onnx::ModelProto Parsed(const std::string& bytes) {
  onnx::ModelProto proto;
  EXPECT_TRUE(proto.ParseFromString(bytes));
  return proto;
}

std::vector<TensorQuantizer> Same(const QdqModel& model, const TensorQuantizer& quantizer) {
  return std::vector<TensorQuantizer>(model.groups().size(), quantizer);
}

std::vector<Tensor> RunModel(const std::string& bytes, const std::vector<std::string>& outputs,
                             const Tensor& x) {
  const Graph graph = ImportOnnxBytes(bytes, "net.onnx", {.outputs = outputs});
  const std::vector<const Tensor*> inputs = {&x};
  return RunReference(graph, inputs);
}

Tensor RandomImage(const Shape& shape) {
  Tensor x(shape);
  FillUniform({x.floats(), static_cast<size_t>(x.size())}, 9);
  return x;
}

// Quantised as its twin of f32 is: the same integers, between Casts at its ends.
TEST(QdqModelTest, ModelsOfFloat16AreWidened) {
  OnnxModel model;
  model.Input("x", {1, 2, 5, 5});
  AddConv(model, "x", "a");
  model.Node("Relu", {"a"}, {"b"});
  AddConv(model, "b", "y");
  model.Output("y", onnx::TensorProto::FLOAT);
  for (onnx::TensorProto& weights : *model.graph().mutable_initializer())
    for (float& value : *weights.mutable_float_data()) value = F16(value);
  OnnxModel half = model;
  constexpr int32_t kHalf = onnx::TensorProto::FLOAT16;
  for (auto* ends : {half.graph().mutable_input(), half.graph().mutable_output()})
    ends->at(0).mutable_type()->mutable_tensor_type()->set_elem_type(kHalf);
  for (onnx::TensorProto& weights : *half.graph().mutable_initializer()) {
    weights.set_data_type(kHalf);
    for (const float value : weights.float_data()) weights.add_int32_data(F16(value).bits);
    weights.clear_float_data();
  }
  EXPECT_FALSE(WidenedModel(model.Bytes(), "net.onnx"));
  const QdqModel twin = Quantizable(model), given = Quantizable(half);
  EXPECT_THAT(Names(twin.tensors()), UnorderedElementsAre("x", "b", "y"));
  EXPECT_THAT(Names(given.tensors()), UnorderedElementsAre("x.f32", "b", "y.f32"));
  const TensorQuantizer quantizer{0.02F, 128, DataType::kU8};
  const QdqFile file = given.Write(Same(given, quantizer), {});
  const onnx::ModelProto widened = Parsed(WidenedModel(half.Bytes(), "net.onnx")->bytes);
  for (const onnx::TensorProto& constant : widened.graph().initializer())
    EXPECT_EQ(constant.data_type(), onnx::TensorProto::FLOAT);
  const Tensor x = TransformGeneric(TransformGeneric(RandomImage({1, 2, 5, 5}), Layout::Nchw(DataType::kF16)),
                                    Layout::Nchw());
  const Tensor expected = RunModel(twin.Write(Same(twin, quantizer), {}).bytes, {"y"}, x)[0];
  const Graph graph = ImportOnnxBytes(file.bytes, "net.onnx");
  const Tensor narrow = TransformGeneric(x, Layout::Nchw(DataType::kF16));
  const Tensor* const inputs[] = {&narrow};
  const Tensor y = RunReference(graph, inputs)[0];
  ASSERT_EQ(y.type(), DataType::kF16);
  const Tensor rounded = TransformGeneric(expected, Layout::Nchw(DataType::kF16));
  EXPECT_TRUE(std::equal(y.raw(), y.raw() + y.bytes(), rounded.raw()));
}

TEST(QdqModelTest, ActivationsShareTheQuantiserOfWhatIsInFront) {
  OnnxModel model;
  model.Input("x", {1, 2, 5, 5});
  AddConv(model, "x", "a");
  model.Node("Relu", {"a"}, {"b"});
  model.Node("MaxPool", {"b"}, {"c"});
  SetInts(*model.graph().mutable_node(2), "kernel_shape", {2, 2});
  AddConv(model, "c", "y");
  model.Output("y");
  const QdqModel qdq = Quantizable(model);
  EXPECT_THAT(Names(qdq.tensors()), UnorderedElementsAre("x", "b", "c", "y"));
  EXPECT_EQ(GroupOf(qdq, "b"), GroupOf(qdq, "c"));
  EXPECT_EQ(qdq.groups().size(), 3u);
  const QdqFile file = qdq.Write(Same(qdq, {0.02F, 128, DataType::kU8}), {{"made", "so"}});
  const onnx::ModelProto proto = Parsed(file.bytes);
  EXPECT_EQ(proto.metadata_props(0).value(), "so");
  std::vector<std::string> types;
  for (const onnx::NodeProto& node : proto.graph().node()) types.push_back(node.op_type());
  const std::string q = "QuantizeLinear", dq = "DequantizeLinear";
  EXPECT_THAT(types,
              ElementsAre(q, dq, dq, dq, "Conv", "Relu", q, dq, "MaxPool", q, dq, dq, dq, "Conv", q, dq));
  // Names stay behind the DequantizeLinear, and the float weights are gone.
  EXPECT_EQ(proto.graph().node(7).output(0), "b");
  for (const onnx::TensorProto& initializer : proto.graph().initializer())
    EXPECT_NE(initializer.name(), "a_w");
  ASSERT_EQ(file.layers.size(), 2u);
  EXPECT_EQ(file.layers[0].output, "b");
  EXPECT_EQ(file.layers[0].channels, 2);
}

TEST(QdqModelTest, WhatNoQuantisedNodeReadsStaysFloat) {
  OnnxModel model;
  model.Input("x", {1, 2, 5, 5});
  AddConv(model, "x", "a");
  AddConv(model, "x", "b");
  model.Node("Add", {"a", "b"}, {"c"});
  model.Node("Sigmoid", {"c"}, {"d"});
  model.Node("GlobalAveragePool", {"d"}, {"e"});
  model.Node("Flatten", {"e"}, {"f"});
  model.Floats("w", {2, 4}, Uniform(8, 1));
  model.Node("Gemm", {"f", "w"}, {"g"});
  model.Node("Softmax", {"g"}, {"y"});
  model.Output("y");
  const QdqModel qdq = Quantizable(model);
  // Everything up to the Gemm's input, which is what the pool gives.
  EXPECT_THAT(Names(qdq.tensors()), UnorderedElementsAre("x", "a", "b", "c", "d", "e", "f"));
  EXPECT_EQ(GroupOf(qdq, "e"), GroupOf(qdq, "f"));
  model.graph().mutable_node()->DeleteSubrange(5, 3);
  model.graph().mutable_output(0)->set_name("e");
  EXPECT_THAT(Names(Quantizable(model).tensors()), UnorderedElementsAre("x", "a", "b"));
}

TEST(QdqModelTest, ConcatHasOneScaleThatItsConstantsAreIn) {
  OnnxModel model;
  model.Input("x", {1, 2, 5, 5});
  AddConv(model, "x", "a", 1);
  model.Floats("k", {1, 1, 5, 5}, std::vector<float>(25, -7));
  SetInt(model.Node("Concat", {"a", "k"}, {"c"}), "axis", 1);
  AddConv(model, "c", "y");
  model.Output("y");
  const QdqModel qdq = Quantizable(model);
  ASSERT_EQ(GroupOf(qdq, "a"), GroupOf(qdq, "c"));
  EXPECT_EQ(qdq.groups()[GroupOf(qdq, "a")].range, (ValueRange{-7, 0}));
  std::vector<TensorQuantizer> quantizers = Same(qdq, {0.05F, 150, DataType::kU8});
  const Tensor x = RandomImage({1, 2, 5, 5});
  const Tensor c = RunModel(qdq.WriteSimulated(quantizers).bytes, {"c"}, x)[0];
  EXPECT_FLOAT_EQ(c.floats()[25], -7);
}

// What the simulation computes is what integers give: every tensor a multiple of its scale, within the ends,
// next to what the float model gives.
TEST(QdqModelTest, SimulatedValuesAreThoseOfIntegers) {
  OnnxModel model;
  model.Input("x", {2, 2, 6, 6});
  AddConv(model, "x", "a");
  model.Node("Relu", {"a"}, {"b"});
  model.Node("Sigmoid", {"b"}, {"s"});
  model.Node("Mul", {"b", "s"}, {"m"});
  AddConv(model, "m", "y", 3, false);
  model.Output("y");
  const QdqModel qdq = Quantizable(model);
  const Tensor x = RandomImage({2, 2, 6, 6});
  const std::vector<std::string> names = Names(qdq.tensors());
  const std::vector<Tensor> exact = RunModel(model.Bytes(), names, x);
  std::vector<ValueEnds> ends = qdq.groups();
  for (size_t i = 0; i < names.size(); ++i)
    ends[qdq.tensors()[i].group].Add(std::span(exact[i].floats(), static_cast<size_t>(exact[i].size())));
  for (const IntegerForm form : {IntegerForm{DataType::kU8, false}, IntegerForm{DataType::kI8, false},
                                 IntegerForm{DataType::kI8, true}}) {
    std::vector<TensorQuantizer> quantizers;
    for (const ValueEnds& group : ends) quantizers.push_back(QuantizerFor(group.range, form));
    const QdqFile file = qdq.WriteSimulated(quantizers);
    const std::vector<Tensor> simulated = RunModel(file.bytes, names, x);
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == "x") continue;  // inputs keep their name in front
      const TensorQuantizer& quantizer = quantizers[qdq.tensors()[i].group];
      double signal = 0, noise = 0;
      for (int64_t k = 0; k < exact[i].size(); ++k) {
        const double value = simulated[i].floats()[k], scale = quantizer.scale;
        const double stored = value / scale + quantizer.zero_point;
        ASSERT_NEAR(stored, std::nearbyint(stored), 1e-3) << names[i];
        const bool u8 = form.type == DataType::kU8;
        ASSERT_TRUE(stored > (u8 ? -0.5 : -128.5) && stored < (u8 ? 255.5 : 127.5)) << names[i];
        signal += std::pow(exact[i].floats()[k], 2);
        noise += std::pow(value - static_cast<double>(exact[i].floats()[k]), 2);
      }
      EXPECT_LT(noise, signal * 1e-3) << names[i];
    }
    // A layer alone starts from exact inputs, so that the first one is as in the network.
    const QdqFile alone = qdq.WriteAlone(quantizers);
    const std::vector<Tensor> first =
        RunModel(alone.bytes, {alone.layers[0].own_output, alone.layers[0].output}, x);
    const Tensor& in_network = simulated[std::ranges::find(names, "b") - names.begin()];
    const Tensor& in_float = exact[std::ranges::find(names, "b") - names.begin()];
    EXPECT_TRUE(std::equal(first[0].floats(), first[0].floats() + first[0].size(), in_network.floats()));
    EXPECT_TRUE(std::equal(first[1].floats(), first[1].floats() + first[1].size(), in_float.floats()));
  }
}

// A node that stays float writes what others of its kind read as it is, and only the conv reads behind a
// DequantizeLinear; of a conv in integers all read behind it.
TEST(QdqModelTest, FloatNodesReadFloats) {
  for (const bool kept : {false, true}) {
    OnnxModel model;
    model.Input("x", {1, 2, 5, 5});
    AddConv(model, "x", "a");
    AddConv(model, "a", "b");
    model.Node("Exp", {"a"}, {"e"}, "e_node");
    model.Output("b");
    model.Output("e");
    const QdqOptions options{.keep = kept ? std::vector<std::string>{"a_node"} : std::vector<std::string>{}};
    const QdqModel qdq(model.Bytes(), "net.onnx", options);
    const onnx::ModelProto proto = Parsed(qdq.Write(Same(qdq, {0.02F, 128, DataType::kU8}), {}).bytes);
    std::map<std::string, std::string> writers;  // by the tensor, the operator
    for (const onnx::NodeProto& node : proto.graph().node()) writers[node.output(0)] = node.op_type();
    for (const onnx::NodeProto& node : proto.graph().node()) {
      const bool reads_floats = kept && node.name() == "e_node";
      if (node.name() == "e_node" || node.name() == "b_node") {
        EXPECT_EQ(writers.at(node.input(0)), reads_floats ? "Conv" : "DequantizeLinear") << node.name();
      }
    }
    EXPECT_EQ(
        std::ranges::count(writers, "QuantizeLinear", &std::pair<const std::string, std::string>::second),
        kept ? 2 : 3);
  }
}

TEST(QdqModelTest, BatchNormsGoIntoTheWeights) {
  OnnxModel model;
  model.Input("x", {1, 2, 5, 5});
  AddConv(model, "x", "a", 2, false);
  const std::vector<std::string> parameters = {"a", "gamma", "beta", "mean", "variance"};
  for (size_t i = 1; i < parameters.size(); ++i)
    model.Floats(parameters[i], {2}, {0.5F + static_cast<float>(i), 1.5F});
  model.Node("BatchNormalization", parameters, {"b"});
  model.Node("Relu", {"b"}, {"y"});
  model.Output("y");
  const QdqModel qdq = Quantizable(model);
  EXPECT_THAT(Names(qdq.tensors()), UnorderedElementsAre("x", "y"));
  const Tensor x = RandomImage({1, 2, 5, 5});
  const Tensor exact = RunModel(model.Bytes(), {"y"}, x)[0];
  const QdqFile alone = qdq.WriteAlone(Same(qdq, {0.05F, 0, DataType::kU8}));
  const Tensor folded = RunModel(alone.bytes, {"y"}, x)[0];
  for (int64_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(folded.floats()[i], exact.floats()[i], 1e-4);
}

TEST(QdqModelTest, NodesThatStayFloatSayWhy) {
  OnnxModel model;
  model.Input("x", {1, 2, 5, 5});
  model.Input("w", {2, 2, 3, 3});
  AddConv(model, "x", "a");
  model.Node("Conv", {"a", "w"}, {"b"}, "computed");
  AddConv(model, "b", "c");
  model.Floats("inf", {1, 2, 1, 1}, {INFINITY, 1});
  model.Node("Conv", {"c", "inf"}, {"d"}, "infinite");
  AddConv(model, "c", "e");
  model.Output("d");
  model.Output("e");
  const auto kept = [&](const QdqOptions& options) {
    const QdqModel qdq = Quantizable(model, options);
    std::map<std::string, std::string> reasons;
    for (const KeptNode& node : qdq.kept()) reasons[node.name] = node.reason;
    return reasons;
  };
  EXPECT_THAT(kept({}), UnorderedElementsAre(testing::Pair("computed", "its weights are no constants"),
                                             testing::Pair("infinite", "its weights are not finite")));
  EXPECT_EQ(kept({.keep = {"c_node"}}).at("c_node"), "it is to be kept");
  const auto first = kept({.keep_first = true});
  EXPECT_TRUE(first.contains("a_node") && !first.contains("c_node"));
  const auto last = kept({.keep_last = true});
  EXPECT_TRUE(last.contains("e_node") && !last.contains("c_node"));
  QdqModel qdq = Quantizable(model);
  qdq.KeepReadersOf({"b"}, "nobody knows");
  EXPECT_EQ(std::ranges::find(qdq.kept(), "c_node", &KeptNode::name)->reason, "nobody knows");
  EXPECT_EQ(GroupOf(qdq, "b"), -1);
}

TEST(QdqModelTest, RefusesWhatCannotBe) {
  OnnxModel model;
  model.Input("x", {1, 2, 5, 5});
  AddConv(model, "x", "y");
  model.Output("y");
  const auto usage = [&](const QdqOptions& options) {
    return Refusal(ErrorCode::kUsage, [&] { Quantizable(model, options); });
  };
  EXPECT_THAT(usage({.keep = {"conv7"}}), HasSubstr("no node \"conv7\" to keep"));
  EXPECT_THAT(usage({.op_types = {"Softmax"}}),
              HasSubstr("Softmax is not one that is quantised (those are: Conv,"));
  const auto bad = [&](const QdqOptions& options) {
    return Refusal(ErrorCode::kBadModel, [&] { Quantizable(model, options); });
  };
  EXPECT_THAT(bad({.keep_first = true}), HasSubstr("nothing can be quantised: 1 nodes stay float"));
  model.proto.mutable_opset_import(0)->set_version(6);
  EXPECT_THAT(bad({}), HasSubstr("net.onnx: models of opset 7 and more can be quantised, it has 6"));
  OnnxModel none;
  none.Input("x", {1});
  none.Node("Relu", {"x"}, {"y"});
  none.Output("y");
  EXPECT_THAT(Refusal(ErrorCode::kBadModel, [&] { Quantizable(none); }),
              HasSubstr("it has no Conv, ConvTranspose, Gemm or MatMul with constant weights"));
}

// A bias in each of the forms that a Gemm takes, products per row and per column, grouped transposed
// convolutions: the simulation stays near the float model.
TEST(QdqModelTest, NodesWithoutNamesOrWithTooManyAreLeftAlone) {
  OnnxModel model;
  model.Input("x", {1, 2, 5, 5});
  AddConv(model, "x", "");  // in front of what has no input
  model.Node("BatchNormalization", {}, {"norm", "mean"}, "norm_node");
  model.Floats("constant", {1, 2, 5, 5}, Uniform(50, 1));
  model.Node("Concat", {"x", "constant"}, {"first", "second"}, "concat_node");
  AddConv(model, "second", "y");
  model.Output("y");
  QdqModel quantizable = Quantizable(model);
  EXPECT_THAT(Names(quantizable.tensors()), UnorderedElementsAre("second", "y"));
  std::vector<TensorQuantizer> quantizers;
  for (const ValueEnds& group : quantizable.groups()) quantizers.push_back(QuantizerFor(group.range, {}));
  EXPECT_NO_THROW(quantizable.Write(quantizers, {}));
  EXPECT_NO_THROW(quantizable.WriteAlone(quantizers));
}

TEST(QdqModelTest, ProductsAndTransposedConvolutions) {
  OnnxModel model;
  model.Input("x", {2, 4, 3, 3});
  model.Floats("wt", {4, 3, 2, 2}, Uniform(48, 2));
  model.Floats("bt", {6}, Uniform(6, 4));
  SetInt(model.Node("ConvTranspose", {"x", "wt", "bt"}, {"t"}), "group", 2);
  model.Node("GlobalAveragePool", {"t"}, {"p"});
  model.Node("Flatten", {"p"}, {"f"});
  model.Floats("wg", {5, 6}, Uniform(30, 6));
  model.Floats("bg", {1, 5}, Uniform(5, 7));
  onnx::NodeProto& gemm = model.Node("Gemm", {"f", "wg", "bg"}, {"g"});
  SetInt(gemm, "transB", 1);
  for (const auto& [name, value] : {std::pair{"alpha", 0.5F}, {"beta", 3.0F}}) {
    onnx::AttributeProto& attribute = *gemm.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(value);
  }
  model.Floats("wm", {5, 3}, Uniform(15, 8));
  model.Node("MatMul", {"g", "wm"}, {"y"});
  model.Output("y");
  const QdqModel qdq = Quantizable(model);
  EXPECT_THAT(qdq.kept(), IsEmpty());
  const Tensor x = RandomImage({2, 4, 3, 3});
  const std::vector<std::string> names = Names(qdq.tensors());
  const std::vector<Tensor> exact = RunModel(model.Bytes(), names, x);
  std::vector<TensorQuantizer> quantizers;
  std::vector<ValueEnds> ends = qdq.groups();
  for (size_t i = 0; i < names.size(); ++i)
    ends[qdq.tensors()[i].group].Add(std::span(exact[i].floats(), static_cast<size_t>(exact[i].size())));
  for (const ValueEnds& group : ends) quantizers.push_back(QuantizerFor(group.range, {}));
  const QdqFile file = qdq.WriteSimulated(quantizers);
  EXPECT_EQ(file.layers[0].channels, 3);  // its groups share their channels' scales
  const Tensor expected = RunModel(model.Bytes(), {"y"}, x)[0], got = RunModel(file.bytes, {"y"}, x)[0];
  for (int64_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(got.floats()[i], expected.floats()[i], 0.03);
}

// Opset 9's words for things that 13 says otherwise.
TEST(RaiseOpsetTest, TheSameFunctionInOpset13) {
  OnnxModel model(9);
  model.proto.set_ir_version(3);
  model.Input("x", {2, 2, 4, 4});
  model.Floats("k", {2, 2, 1, 1}, Uniform(4, 5));
  model.Input("k", {2, 2, 1, 1});
  model.Node("Conv", {"x", "k"}, {"a"});
  const auto set_float = [](onnx::NodeProto& node, const std::string& name, float value) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(value);
  };
  onnx::NodeProto& clip = model.Node("Clip", {"a"}, {"b"});
  set_float(clip, "min", -0.5F);
  set_float(clip, "max", 0.25F);
  SetInts(model.Node("Pad", {"b"}, {"c"}), "pads", {0, 0, 1, 0, 0, 0, 0, 1});
  onnx::NodeProto& slice = model.Node("Slice", {"c"}, {"d"});
  SetInts(slice, "starts", {1});
  SetInts(slice, "ends", {4});
  SetInts(slice, "axes", {2});
  SetInts(model.Node("Unsqueeze", {"d"}, {"e"}), "axes", {0});
  SetInts(model.Node("Squeeze", {"e"}, {"f"}), "axes", {0});
  SetInts(model.Node("Split", {"f"}, {"g", "h"}), "split", {1, 4});
  SetInt(*model.graph().mutable_node(model.graph().node_size() - 1), "axis", 3);
  set_float(model.Node("Dropout", {"h"}, {"i"}), "ratio", 0.5F);
  SetInt(model.Node("Softmax", {"i"}, {"j"}), "axis", 1);
  model.Floats("scales", {4}, {1, 1, 2, 3});
  model.Node("Upsample", {"j", "scales"}, {"k2"});
  SetInts(model.Node("ReduceSum", {"k2"}, {"y"}), "axes", {1});
  model.Output("y");
  onnx::ModelProto raised = model.proto;
  RaiseOpset(raised, "net.onnx");
  EXPECT_EQ(raised.opset_import(0).version(), 13);
  EXPECT_EQ(raised.graph().input_size(), 1);
  const Tensor x = RandomImage({2, 2, 4, 4});
  const Tensor expected = RunModel(model.Bytes(), {"y"}, x)[0];
  const Tensor got = RunModel(raised.SerializeAsString(), {"y"}, x)[0];
  ASSERT_EQ(got.shape(), expected.shape());
  for (int64_t i = 0; i < expected.size(); ++i) EXPECT_FLOAT_EQ(got.floats()[i], expected.floats()[i]);
}

}  // namespace
}  // namespace tilesmith
