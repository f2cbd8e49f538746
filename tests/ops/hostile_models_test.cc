// Models whose sizes overflow, whose constants explode, or that are merely long.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layouts/base/error.h"
#include "ops/graph/reference_run.h"
#include "ops/passes/passes.h"
#include "tests/support/ops/onnx_model.h"

namespace tilesmith {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// 7 times it is 1 modulo 2^64.
constexpr int64_t kInverseOf7 = 7905747460161236407;

std::string RefusalOf(const OnnxModel& model, const ImportOptions& options = {}) {
  try {
    OptimizeGraph(model.Import(options));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadModel) << error.what();
    return error.what();
  }
  return "accepted";
}

// x 1x1x1x1 -> node -> y.
OnnxModel OneNode(const std::string& type, const std::vector<OnnxDim>& input = {1, 1, 1, 1}) {
  OnnxModel model;
  model.Input("x", input);
  model.Node(type, {"x"}, {"y"}, "node");
  model.Output("y");
  return model;
}

onnx::NodeProto& NodeOf(OnnxModel& model) { return *model.graph().mutable_node(0); }

TEST(HostileModels, ReshapeWhoseProductWrapsAround) {
  for (const bool constant : {false, true}) {
    OnnxModel model;
    if (constant) {
      model.Floats("x", {1}, {1});
    } else {
      model.Input("x", {1});
    }
    model.Ints("shape", {7, kInverseOf7});
    model.Node("Reshape", {"x", "shape"}, {"wide"}, "reshape");
    model.Node("Slice", {"wide", "from", "to"}, {"y"}, "slice");
    model.Ints("from", {0, 0});
    model.Ints("to", {1, 3072});
    model.Output("y");
    EXPECT_THAT(RefusalOf(model), AllOf(HasSubstr("\"reshape\""), HasSubstr("7905747460161236407")));
  }
}

TEST(HostileModels, ExpandToMoreThanMemory) {
  for (const bool constant : {false, true}) {
    OnnxModel model;
    if (constant) {
      model.Floats("x", {1}, {1});
    } else {
      model.Input("x", {1});
    }
    model.Ints("shape", {int64_t{1} << 32, int64_t{1} << 32});
    model.Node("Expand", {"x", "shape"}, {"y"}, "expand");
    model.Output("y");
    EXPECT_THAT(RefusalOf(model),
                AllOf(HasSubstr("4294967296x4294967296"), HasSubstr("2147483648 elements")));
  }
}

TEST(HostileModels, ResizeToMoreThanMemory) {
  OnnxModel model;
  model.Input("x", {1, 3, 8, 8});
  model.Ints("sizes", {1, 3, int64_t{1} << 62, 1});
  model.Node("Resize", {"x", "", "", "sizes"}, {"y"}, "resize");
  model.Output("y");
  EXPECT_THAT(RefusalOf(model), HasSubstr("4611686018427387904"));
}

TEST(HostileModels, LargestOfMoreThanCanBeCompared) {
  OnnxModel model;
  model.Input("x", {1});
  model.Ints("sizes", {1 << 24});
  model.Node("ConstantOfShape", {"sizes"}, {"large"}, "fill");
  model.Floats("one", {1}, {1});
  std::vector<std::string> many(60000, "one");
  many.front() = "large";
  model.Node("Max", many, {"largest"}, "max");
  model.Node("Add", {"x", "largest"}, {"y"}, "add");
  model.Output("y");
  EXPECT_THAT(RefusalOf(model), HasSubstr("depends on constants only"));
}

TEST(HostileModels, InputsLargerThanTheLimit) {
  const OnnxModel model = OneNode("Relu", {1 << 16, 1 << 16, 1 << 16, 1 << 16});
  EXPECT_THAT(RefusalOf(model), HasSubstr("65536x65536x65536x65536"));
  const OnnxModel small = OneNode("Relu", {1, 3, 8, 8});
  EXPECT_THAT(RefusalOf(small, {.limits = {.tensor_elements = 191}}), HasSubstr("more than 191 elements"));
  EXPECT_EQ(RefusalOf(small, {.limits = {.tensor_elements = 192}}), "accepted");
  const OnnxModel megabyte = OneNode("Relu", {1, 4, 256, 256});
  EXPECT_THAT(RefusalOf(megabyte, {.limits = {.network_bytes = 2'000'000}}), HasSubstr("take 2 MiB"));
  EXPECT_EQ(RefusalOf(megabyte, {.limits = {.network_bytes = 2'100'000}}), "accepted");
}

TEST(HostileModels, PadsConcatsAndWindowsOutOfRange) {
  OnnxModel pad = OneNode("Pad");
  pad.Ints("pads", {0, 0, int64_t{1} << 62, 0, 0, 0, int64_t{1} << 62, 0});
  NodeOf(pad).add_input("pads");
  EXPECT_THAT(RefusalOf(pad), HasSubstr("4611686018427387904"));

  OnnxModel concat = OneNode("Concat", {int64_t{1} << 30, 1});
  for (int i = 0; i < 7; ++i) NodeOf(concat).add_input("x");
  SetInt(NodeOf(concat), "axis", 0);
  EXPECT_THAT(RefusalOf(concat), HasSubstr("8589934592x1"));

  OnnxModel pool = OneNode("MaxPool");
  SetInts(NodeOf(pool), "kernel_shape", {1 << 30, 1 << 30});
  SetInts(NodeOf(pool), "pads", {1 << 29, 1 << 29, 1 << 29, 1 << 29});
  EXPECT_THAT(RefusalOf(pool),
              AllOf(HasSubstr("kernel_shape is [1073741824"), HasSubstr("at most 16777216")));

  OnnxModel shuffle = OneNode("DepthToSpace");
  SetInt(NodeOf(shuffle), "blocksize", int64_t{1} << 32);
  EXPECT_THAT(RefusalOf(shuffle), HasSubstr("blocksize is 4294967296"));

  OnnxModel transposed = OneNode("ConvTranspose");
  transposed.Floats("w", {1, 1, 1, 1}, {1});
  NodeOf(transposed).add_input("w");
  SetInts(NodeOf(transposed), "output_shape", {int64_t{1} << 40, int64_t{1} << 40});
  EXPECT_THAT(RefusalOf(transposed), HasSubstr("1099511627776"));
}

// A window far larger than the image is a few taps of it, and takes no longer than those.
TEST(HostileModels, LargeWindowsTakeNoTime) {
  OnnxModel model = OneNode("AveragePool", {1, 1, 3, 3});
  SetInts(NodeOf(model), "kernel_shape", {kMaxWindow, kMaxWindow});
  SetInts(NodeOf(model), "pads", {kMaxWindow - 1, kMaxWindow - 1, kMaxWindow - 1, kMaxWindow - 1});
  SetInts(NodeOf(model), "strides", {kMaxWindow, kMaxWindow});
  const Graph graph = OptimizeGraph(model.Import());
  Tensor image({1, 1, 3, 3});
  for (int64_t i = 0; i < 9; ++i) image.floats()[i] = static_cast<float>(i);
  const Tensor* inputs[] = {&image};
  const Tensor output = RunReference(graph, inputs).at(0);
  EXPECT_EQ(output.shape(), (Shape{1, 1, 2, 2}));
  EXPECT_EQ(output.floats()[0], 0);
}

TEST(HostileModels, ConstantsThatDouble) {
  OnnxModel model;
  model.Input("x", {1});
  model.Floats("c0", {1, 1}, {1});
  for (int i = 0; i < 60; ++i) {
    const std::string from = fmt::format("c{}", i);
    SetInt(model.Node("Concat", {from, from}, {fmt::format("c{}", i + 1)}, fmt::format("concat{}", i)),
           "axis", 0);
  }
  model.Node("Add", {"x", "c60"}, {"y"}, "add");
  model.Output("y");
  EXPECT_THAT(RefusalOf(model), AllOf(HasSubstr("depends on constants only"), HasSubstr("concat")));
}

TEST(HostileModels, ActivationsThatDouble) {
  OnnxModel model;
  model.Input("x0", {1, 1});
  for (int i = 0; i < 60; ++i) {
    const std::string from = fmt::format("x{}", i);
    SetInt(model.Node("Concat", {from, from}, {fmt::format("x{}", i + 1)}, fmt::format("concat{}", i)),
           "axis", 0);
  }
  model.Output("x60");
  EXPECT_THAT(RefusalOf(model), AllOf(HasSubstr("concat31"), HasSubstr("4294967296x1")));
}

// Absent inputs, inputs of other types, tensors computed twice: refused, naming the node.
TEST(HostileModels, InputsThatDoNotFit) {
  for (const char* type : {"Max", "Sum", "Min"}) {
    OnnxModel none;
    none.Input("x", {4});
    none.Node(type, {}, {"y"}, "node");
    none.Output("y");
    EXPECT_THAT(RefusalOf(none), AllOf(HasSubstr("\"y\""), HasSubstr("input 0 is missing")));
    OnnxModel hole;
    hole.Input("x", {4});
    hole.Node(type, {"x", "", "x"}, {"y"}, "node");
    hole.Output("y");
    EXPECT_THAT(RefusalOf(hole), AllOf(HasSubstr("\"y\""), HasSubstr("input 1 is missing")));
  }
  const std::pair<const char*, const char*> of_floats[] = {{"Relu", "only float inputs"},
                                                           {"Softmax", "only float inputs"},
                                                           {"Erf", "integers are not supported"},
                                                           {"GlobalAveragePool", "only float inputs"}};
  for (const auto& [type, reason] : of_floats) {
    OnnxModel integers;
    integers.Input("x", {1});
    integers.Weight("i", {1, 1, 1, 1}, onnx::TensorProto::INT64).add_int64_data(3);
    integers.Node(type, {"i"}, {"y"}, "node");
    integers.Output("y");
    EXPECT_THAT(RefusalOf(integers), AllOf(HasSubstr("\"y\""), HasSubstr(reason)));
  }
  OnnxModel mixed;
  mixed.Input("x", {1});
  mixed.Ints("i", {1});
  mixed.Floats("f", {1}, {1});
  SetInt(mixed.Node("Concat", {"i", "f"}, {"y"}, "node"), "axis", 0);
  mixed.Output("y");
  EXPECT_THAT(RefusalOf(mixed), HasSubstr("different types"));

  OnnxModel twice = OneNode("Relu");
  twice.Node("Tanh", {"x"}, {"y"}, "again");
  EXPECT_THAT(RefusalOf(twice), AllOf(HasSubstr("Tanh"), HasSubstr("\"y\"")));
}

// Not square in the number of nodes: this would take minutes.
TEST(HostileModels, LongChainsOfOneName) {
  constexpr int kNodes = 50'000;
  OnnxModel model;
  model.Input("x0", {1, 2, 2, 2});
  for (int i = 0; i < kNodes; ++i) {
    model.Node("Tanh", {fmt::format("x{}", i)}, {fmt::format("x{}", i + 1)}, "same");
  }
  model.Output(fmt::format("x{}", kNodes));
  const Graph graph = OptimizeGraph(model.Import());
  EXPECT_EQ(graph.size(), size_t{kNodes + 1});
  EXPECT_TRUE(graph.Find("same_49998").has_value());
}

TEST(HostileModels, ManyOutputs) {
  constexpr int kNodes = 20'000;
  OnnxModel model;
  model.Input("x", {1, 2});
  for (int i = 0; i < kNodes; ++i) {
    model.Node("Tanh", {"x"}, {fmt::format("y{}", i)});
    model.Output(fmt::format("y{}", i));
  }
  EXPECT_EQ(OptimizeGraph(model.Import()).outputs().size(), size_t{kNodes});
}

}  // namespace
}  // namespace tilesmith
