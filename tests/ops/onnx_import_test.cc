#include "ops/onnx/onnx_import.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "layouts/base/error.h"
#include "ops/base/onnx_type.h"
#include "ops/graph/reference_run.h"
#include "tests/support/ops/onnx_model.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_files.h"

namespace tilesmith {
namespace {

using onnx::TensorProto;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

using Dim = OnnxDim;
using Model = OnnxModel;

std::string RefusedModel(const Model& model, const ImportOptions& options = {}) {
  return Refusal(ErrorCode::kBadModel, [&] { model.Import(options); });
}

std::vector<std::string> NodeNames(const Graph& graph) {
  std::vector<std::string> names;
  for (Graph::NodeId id = 0; id < graph.size(); ++id) names.push_back(graph.node(id).name);
  return names;
}

std::vector<float> RunOn(const Graph& graph, const std::vector<float>& values) {
  Tensor input(graph.node(graph.GraphInputs().at(0)).shape);
  std::ranges::copy(values, input.floats());
  const Tensor* inputs[] = {&input};
  const Tensor output = RunReference(graph, inputs).at(0);
  return {output.floats(), output.floats() + output.size()};
}

// y = x + w, whose w the test supplies.
Model AddModel(const std::vector<Dim>& dims = {1, 2}) {
  Model model;
  model.Input("x", dims);
  model.Output("y");
  model.Node("Add", {"x", "w"}, {"y"}, "add");
  return model;
}

template <typename T>
std::vector<float> WeightsRead(int32_t type, const std::vector<T>& raw) {
  Model model;
  model.Input("x", {1, 2});
  model.Output("y");
  TensorProto& tensor = model.Weight("stored", {static_cast<int64_t>(raw.size())}, type);
  tensor.set_raw_data(raw.data(), raw.size() * sizeof(T));
  SetInt(model.Node("Cast", {"stored"}, {"w"}), "to", TensorProto::FLOAT);
  model.Node("Add", {"x", "w"}, {"y"}, "add");
  return RunOn(model.Import(), {0, 0});
}

TEST(OnnxWeights, EveryFloatType) {
  EXPECT_THAT(WeightsRead<float>(TensorProto::FLOAT, {1.5f, -2}), ElementsAre(1.5f, -2));
  EXPECT_THAT(WeightsRead<double>(TensorProto::DOUBLE, {1.5, -2}), ElementsAre(1.5f, -2));
  EXPECT_THAT(WeightsRead<uint16_t>(TensorProto::BFLOAT16, {0x3fc0, 0xc000}), ElementsAre(1.5f, -2));
  EXPECT_THAT(WeightsRead<uint16_t>(TensorProto::FLOAT16, {0x3e00, 0xc000}), ElementsAre(1.5f, -2));
  EXPECT_THAT(WeightsRead<uint16_t>(TensorProto::FLOAT16, {0x0001, 0x7c00}),
              ElementsAre(std::ldexp(1.0f, -24), INFINITY));
  EXPECT_THAT(WeightsRead<uint16_t>(TensorProto::FLOAT16, {0x7bff, 0x8400}),
              ElementsAre(65504.0f, -std::ldexp(1.0f, -14)));
}

TEST(OnnxWeights, TypedFieldsAndIntegers) {
  const auto parse = [](TensorProto tensor) { return ParseOnnxTensor(tensor.SerializeAsString(), "t.pb"); };
  TensorProto half;
  half.add_dims(1), half.set_data_type(TensorProto::FLOAT16), half.add_int32_data(0x3e00);
  EXPECT_EQ(static_cast<float>(parse(half).data<F16>()[0]), 1.5f);
  TensorProto bytes;
  bytes.add_dims(2), bytes.set_data_type(TensorProto::INT8), bytes.set_raw_data("\xff\x05", 2);
  const Tensor ints = parse(bytes);
  EXPECT_EQ(ints.type(), DataType::kI8);
  EXPECT_THAT(std::vector<int>(ints.data<int8_t>(), ints.data<int8_t>() + 2), ElementsAre(-1, 5));
  bytes.set_data_type(TensorProto::BOOL), bytes.set_raw_data("\x07\x00", 2);
  EXPECT_TRUE(parse(bytes).data<bool>()[0]);
  EXPECT_FALSE(parse(bytes).data<bool>()[1]);
}

// Each type's values, in raw_data and in the field that ONNX has for it.
TEST(OnnxWeights, EveryTypeBothWays) {
  const auto check = [](int32_t number, auto value, const auto& add) {
    using T = decltype(value);
    TensorProto raw, typed;
    for (TensorProto* proto : {&raw, &typed}) proto->add_dims(2), proto->set_data_type(number);
    const T values[] = {value, T()};
    raw.set_raw_data(values, sizeof(values));
    add(typed);
    for (const TensorProto& proto : {raw, typed}) {
      const Tensor tensor = ParseOnnxTensor(proto.SerializeAsString(), "t.pb");
      ASSERT_EQ(tensor.type(), kDataTypeOf<T>) << number;
      EXPECT_EQ(std::memcmp(tensor.raw(), values, sizeof(values)), 0) << number;
    }
  };
  const auto in_int32 = [](int32_t value) {
    return [value](TensorProto& proto) { proto.add_int32_data(value), proto.add_int32_data(0); };
  };
  const auto in_uint64 = [](uint64_t value) {
    return [value](TensorProto& proto) { proto.add_uint64_data(value), proto.add_uint64_data(0); };
  };
  check(TensorProto::FLOAT, 1.5f,
        [](TensorProto& proto) { proto.add_float_data(1.5f), proto.add_float_data(0); });
  check(TensorProto::FLOAT16, F16(1.5f), in_int32(0x3e00));
  check(TensorProto::BFLOAT16, Bf16(1.5f), in_int32(0x3fc0));
  check(TensorProto::INT8, int8_t{-5}, in_int32(-5));
  check(TensorProto::INT16, int16_t{-500}, in_int32(-500));
  check(TensorProto::INT32, int32_t{-50000000}, in_int32(-50000000));
  check(TensorProto::INT64, int64_t{-1} << 40,
        [](TensorProto& proto) { proto.add_int64_data(int64_t{-1} << 40), proto.add_int64_data(0); });
  check(TensorProto::UINT8, uint8_t{200}, in_int32(200));
  check(TensorProto::UINT16, uint16_t{60000}, in_int32(60000));
  check(TensorProto::UINT32, uint32_t{4000000000}, in_uint64(4000000000));
  check(TensorProto::UINT64, uint64_t{1} << 63, in_uint64(uint64_t{1} << 63));
  check(TensorProto::BOOL, true, in_int32(1));
}

TEST(OnnxImport, InputsOfEveryType) {
  for (int number = 0; number < kDataTypes; ++number) {
    const auto type = static_cast<DataType>(number);
    Model model;
    model.Input("x", {2, 3}, OnnxTypeNumber(type));
    model.Node("Transpose", {"x"}, {"y"}, "node");
    model.Output("y", OnnxTypeNumber(type));
    const Graph graph = model.Import();
    EXPECT_EQ(graph.node(graph.GraphInputs()[0]).type, type);
    EXPECT_EQ(graph.node(graph.outputs()[0]).type, type);
    EXPECT_EQ(graph.node(*graph.Find(ComputedType(type) == type ? "y" : "node")).type, ComputedType(type));
  }
  for (const int32_t number : {TensorProto::STRING, TensorProto::COMPLEX64}) {
    Model model;
    model.Input("x", {2, 3}, number);
    model.Node("Transpose", {"x"}, {"y"}, "node");
    model.Output("y");
    try {
      model.Import();
      ADD_FAILURE() << number;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadModel);
      EXPECT_THAT(error.what(), HasSubstr("input \"x\": its elements are "));
    }
  }
}

TEST(OnnxWeights, RefusesWhatDoesNotFit) {
  Model model = AddModel();
  TensorProto& tensor = model.Weight("w", {2}, TensorProto::FLOAT);
  tensor.add_float_data(1);
  EXPECT_THAT(RefusedModel(model), AllOf(HasSubstr("\"w\""), HasSubstr("1 values"), HasSubstr("needs 2")));
  tensor.set_dims(0, int64_t{1} << 40);
  EXPECT_THAT(RefusedModel(model), HasSubstr("more values than there are"));
  tensor.set_dims(0, 2);
  tensor.set_data_location(TensorProto::EXTERNAL);
  auto* entry = tensor.add_external_data();
  entry->set_key("location"), entry->set_value("weights.bin");
  EXPECT_THAT(RefusedModel(model),
              AllOf(HasSubstr("\"w\""), HasSubstr("weights.bin\", which is not read here")));
  tensor.clear_data_location(), tensor.set_data_type(TensorProto::STRING);
  EXPECT_THAT(RefusedModel(model), HasSubstr("STRING"));
  tensor.set_data_type(TensorProto::FLOAT), tensor.set_dims(0, -2);
  EXPECT_THAT(RefusedModel(model), HasSubstr("negative"));
}

TEST(OnnxWeights, FromConstantNodesAndListedAsInputs) {
  Model model;
  model.Input("x", {1, 2});
  model.Input("w", {2});  // as old exporters do
  model.Floats("w", {2}, {1, 2});
  onnx::NodeProto& constant = model.Node("Constant", {}, {"c"});
  onnx::AttributeProto* value = constant.add_attribute();
  value->set_name("value"), value->set_type(onnx::AttributeProto::TENSOR);
  value->mutable_t()->set_data_type(TensorProto::FLOAT);
  value->mutable_t()->add_float_data(10);
  model.Ints("two", {2});
  model.Node("ConstantOfShape", {"two"}, {"zeros"});
  model.Node("Add", {"x", "w"}, {"xw"}, "add1");
  model.Node("Add", {"xw", "c"}, {"xwc"}, "add2");
  model.Node("Add", {"xwc", "zeros"}, {"y"}, "add3");
  model.Output("y");
  const Graph graph = model.Import();
  EXPECT_EQ(graph.GraphInputs().size(), 1u);
  EXPECT_THAT(NodeNames(graph), ElementsAre("x", "add1", "add2", "y"));
  EXPECT_THAT(RunOn(graph, {100, 200}), ElementsAre(111, 212));
  EXPECT_THAT(SummarizeOnnx(model.Bytes(), "net").inputs, ElementsAre("x"));
}

TEST(OnnxImport, ConstantsOptionTurnsInputsIntoWeights) {
  Model model = AddModel();
  model.Input("w", {2});
  Tensor w({2});
  w.floats()[1] = 5;
  EXPECT_THAT(RunOn(model.Import({.constants = {{"w", w}}}), {1, 2}), ElementsAre(1, 7));
  EXPECT_EQ(model.Import().GraphInputs().size(), 2u);
}

TEST(OnnxImport, ShapeArithmeticFoldsAway) {
  Model model;
  model.Input("x", {2, 3, 4, 5});
  model.Node("Shape", {"x"}, {"shape"});
  model.Ints("zero", {0});
  model.Node("Gather", {"shape", "zero"}, {"batch"});
  model.Ints("minus_one", {-1});
  onnx::NodeProto& join = model.Node("Concat", {"batch", "minus_one"}, {"target"});
  SetInt(join, "axis", 0);
  model.Node("Reshape", {"x", "target"}, {"y"}, "flat");
  model.Output("y");
  const Graph graph = model.Import();
  EXPECT_THAT(NodeNames(graph), ElementsAre("x", "y"));
  EXPECT_EQ(graph.node(1).shape, (Shape{2, 60}));
}

TEST(OnnxImport, NamesFollowTensorsAtTheEnds) {
  Model model;
  model.Input("x", {1, 2});
  model.Node("Relu", {"x"}, {"t"}, "y");  // a node that has the name of another's output
  model.Node("Relu", {"t"}, {"u"});
  model.Node("Relu", {"u"}, {"y"}, "last");
  model.Output("y");
  model.Output("x");
  model.Output("y");
  const Graph graph = model.Import();
  EXPECT_THAT(NodeNames(graph), ElementsAre("x", "t", "u", "y", "y_1"));
  EXPECT_THAT(graph.outputs(), ElementsAre(3, 0, 4));
}

TEST(OnnxImport, DynamicSizes) {
  Model model = AddModel({"N", 3, "height", "width"});
  model.Floats("w", {1}, {1});
  EXPECT_THAT(RefusedModel(model), AllOf(HasSubstr("net.onnx"), HasSubstr("\"x\" is [N, 3, height, width]"),
                                         HasSubstr("`input_shapes` x=1x3x224x224")));
  const auto shape = [&](const ImportOptions& options) { return model.Import(options).node(0).shape; };
  EXPECT_EQ(shape({.dims = {{"height", 8}, {"width", 9}}}), (Shape{1, 3, 8, 9}));
  EXPECT_EQ(shape({.dims = {{"height", 8}, {"width", 9}}, .batch = 4}), (Shape{4, 3, 8, 9}));
  EXPECT_EQ(shape({.dims = {{"height", 8}, {"width", 9}, {"N", 2}}}), (Shape{2, 3, 8, 9}));
  EXPECT_EQ(shape({.input_shapes = {{"x", {5, 3, 6, 7}}}}), (Shape{5, 3, 6, 7}));
  EXPECT_THAT(RefusedModel(model, {.input_shapes = {{"x", {5, 3}}}}), HasSubstr("2 dimensions"));
  EXPECT_EQ(shape({.input_shapes = {{"x", {5, 3, 0, 2}}}}), (Shape{5, 3, 0, 2}));
  EXPECT_THAT(RefusedModel(model, {.input_shapes = {{"x", {5, 3, -1, 2}}}}), HasSubstr("negative"));
  const auto usage = [&](const ImportOptions& options) {
    return Refusal(ErrorCode::kUsage, [&] { model.Import(options); });
  };
  EXPECT_THAT(usage({.input_shapes = {{"X", {1}}}}), AllOf(HasSubstr("\"X\""), HasSubstr("known: x")));
  EXPECT_THAT(usage({.dims = {{"depth", 1}}}), AllOf(HasSubstr("\"depth\""), HasSubstr("N, height, width")));
}

TEST(OnnxImport, OneSizeNamesADimensionOrAnInputOfRankOne) {
  Model model = AddModel({"length"});
  model.Floats("w", {1}, {1});
  const auto shape = [&](const ImportOptions& options) { return model.Import(options).node(0).shape; };
  EXPECT_EQ(shape({.dims = {{"x", 5}}}), Shape{5});
  EXPECT_EQ(shape({.dims = {{"length", 6}}}), Shape{6});
  Model matrix = AddModel({"N", "length"});
  matrix.Floats("w", {1}, {1});
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { matrix.Import({.dims = {{"x", 5}}}); }), HasSubstr("\"x\""));
}

TEST(OnnxImport, RefusesOtherElementTypesAndOpsets) {
  Model strings;
  strings.Input("x", {1, 2}, TensorProto::STRING);
  strings.Node("Relu", {"x"}, {"y"});
  strings.Output("y");
  EXPECT_THAT(RefusedModel(strings), AllOf(HasSubstr("\"x\""), HasSubstr("STRING")));
  for (const int64_t opset : {0, 26}) {
    Model model(opset);
    model.Output("y");
    EXPECT_THAT(RefusedModel(model), HasSubstr("opset"));
  }
  Model old(4);
  old.Input("x", {1, 2});
  old.Node("Add", {"x", "x"}, {"y"}, "sum");
  old.Output("y");
  EXPECT_THAT(RefusedModel(old), AllOf(HasSubstr("Add (node \"y\")"), HasSubstr("opset 4")));
}

TEST(OnnxImport, ListsEveryUnsupportedNode) {
  Model model;
  model.Input("x", {1, 2});
  model.Node("Frobnicate", {"x"}, {"a"}, "one");
  model.Node("Relu", {"a"}, {"b"}, "fine");
  model.Node("Wibble", {"b"}, {"c"}, "two");
  model.Node("Relu", {"x"}, {"d"}, "three").set_domain("com.example");
  model.Node("LRN", {"x"}, {"e", "mask"}, "four");
  model.Node("Conv", {"x", "x"}, {"f"}, "five");
  model.Node("Relu", {"missing"}, {"g"}, "six");
  model.Node("Sum", {"c", "d", "e", "f", "g", "mask"}, {"y"});
  model.Output("y");
  const std::string message = RefusedModel(model);
  for (const std::string line : {"Frobnicate (node \"one\")", "Wibble (node \"two\")", "com.example",
                                 "LRN (node \"four\")", "Conv (node \"five\")", "\"missing\""}) {
    EXPECT_THAT(message, HasSubstr(line));
  }
  EXPECT_THAT(message, Not(HasSubstr("fine")));
  EXPECT_EQ(std::ranges::count(message, '\n'), 6) << message;
}

TEST(OnnxImport, UnusedExtraOutputsAreFine) {
  Model model;
  model.Input("x", {1, 2});
  model.Node("Dropout", {"x"}, {"y", "mask"});
  model.Output("y");
  EXPECT_THAT(RunOn(model.Import(), {1, 2}), ElementsAre(1, 2));
}

TEST(OnnxImport, TranslatesOpset6Broadcast) {
  Model model(6);
  model.Input("x", {1, 2, 1, 2});
  model.Floats("w", {2}, {10, 20});
  onnx::NodeProto& add = model.Node("Add", {"x", "w"}, {"y"});
  SetInt(add, "broadcast", 1);
  SetInt(add, "axis", 1);
  model.Output("y");
  EXPECT_THAT(RunOn(model.Import(), {1, 2, 3, 4}), ElementsAre(11, 12, 23, 24));
  for (const int64_t axis : {int64_t{-10'000'000'000}, std::numeric_limits<int64_t>::min(), int64_t{5}}) {
    add.mutable_attribute(1)->set_i(axis);
    EXPECT_THAT(Refusal(ErrorCode::kBadModel, [&] { model.Import(); }), HasSubstr(fmt::format("{}", axis)));
  }
}

TEST(OnnxFiles, EachBrokenFileHasItsReason) {
  const TemporaryDirectory folder;
  const auto refusal = [&](const std::string& name, const std::string& bytes) {
    const std::string path = folder.File(name);
    std::ofstream(path, std::ios::binary) << bytes;
    const std::string message = Refusal(ErrorCode::kBadModel, [&] { ImportOnnx(path); });
    EXPECT_THAT(message, AllOf(HasSubstr(path), Not(HasSubstr("\n"))));
    std::filesystem::remove(path);
    return message;
  };
  Model model = AddModel();
  model.Floats("w", {1000}, std::vector<float>(1000, 1));
  const std::string whole = model.Bytes();
  EXPECT_THAT(refusal("empty.onnx", ""), HasSubstr("empty"));
  EXPECT_THAT(refusal("text.onnx", "# A page of text\nis no model.\n"), HasSubstr("text file"));
  EXPECT_THAT(refusal("lfs.onnx", "version https://git-lfs.github.com/spec/v1\n"), HasSubstr("LFS"));
  EXPECT_THAT(refusal("graphless.onnx", onnx::ModelProto().SerializeAsString() + "\x08\x08"),
              HasSubstr("no graph"));
  EXPECT_THAT(refusal("noise.onnx", std::string("\xff\xff\xff\xff\x00\x01", 6)),
              HasSubstr("not an ONNX model"));
  // Cut anywhere, the file is refused; within the graph, with the number of bytes that are missing.
  EXPECT_THAT(refusal("cut.onnx", whole.substr(0, whole.size() / 2)), HasSubstr("truncated"));
  for (const size_t kept : {size_t{1}, size_t{3}, size_t{10}, whole.size() - 10}) {
    refusal("cut.onnx", whole.substr(0, kept));
  }
  const std::string missing = folder.File("missing.onnx");
  EXPECT_THAT(Refusal(ErrorCode::kEnvironment, [&] { ImportOnnx(missing); }),
              AllOf(HasSubstr(missing), HasSubstr("No such file")));
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { ImportOnnx(folder.path()); }), HasSubstr("directory"));
}

}  // namespace
}  // namespace tilesmith
