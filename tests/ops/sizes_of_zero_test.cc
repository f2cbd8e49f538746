// Tensors without elements: what a network computes of nothing, and that no node that would compute nothing
// is left in its graph.
#include <gmock/gmock.h>

#include <cmath>

#include "ops/base/op.h"
#include "ops/graph/reference_run.h"
#include "ops/passes/passes.h"
#include "tests/ops/test_node.h"
#include "tests/support/ops/onnx_model.h"

namespace tilesmith {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsNan;

Tensor None(const Shape& shape, DataType type = DataType::kF32) { return Tensor(shape, Layout::Nchw(type)); }

// How many nodes there are beside inputs and constants.
int64_t ComputedNodes(const Graph& graph) {
  int64_t count = 0;
  for (Graph::NodeId id = 0; id < graph.size(); ++id) count += !graph.IsSource(id);
  return count;
}

// The head of a detector's second stage, for regions {n, 3, 8, 8}.
OnnxModel SecondStage(std::vector<OnnxDim> regions) {
  OnnxModel model(17);
  model.Input("regions", regions);
  model.Floats("weights", {8, 3, 3, 3}, std::vector<float>(8 * 27, 0.5F));
  model.Floats("dense", {8, 10}, std::vector<float>(80, 0.25F));
  model.Floats("bias", {10}, std::vector<float>(10, 1));
  SetInts(model.Node("Conv", {"regions", "weights"}, {"conv"}), "pads", {1, 1, 1, 1});
  model.Node("Relu", {"conv"}, {"relu"});
  model.Node("GlobalAveragePool", {"relu"}, {"mean"});
  model.Node("Flatten", {"mean"}, {"flat"});
  model.Node("Gemm", {"flat", "dense", "bias"}, {"scores"});
  model.Output("scores");
  return model;
}

TEST(SizesOfZero, ANetworkOfNothingHasNoNodes) {
  const Graph fixed = SecondStage({0, 3, 8, 8}).Import(), one = SecondStage({1, 3, 8, 8}).Import();
  const OnnxModel open = SecondStage({"n", 3, 8, 8});
  for (const Graph& graph : {fixed, open.Import({.dims = {{"n", 0}}}), open.Import({.batch = 0}),
                             open.Import({.input_shapes = {{"regions", {0, 3, 8, 8}}}})}) {
    EXPECT_EQ(ComputedNodes(graph), 0);
    ASSERT_EQ(graph.GraphInputs().size(), 1u);
    EXPECT_EQ(graph.node(graph.GraphInputs()[0]).shape, (Shape{0, 3, 8, 8}));
    ASSERT_EQ(graph.outputs().size(), 1u);
    EXPECT_EQ(graph.node(graph.outputs()[0]).name, "scores");
    EXPECT_EQ(graph.node(graph.outputs()[0]).shape, (Shape{0, 10}));
    const Tensor regions = None({0, 3, 8, 8});
    const Tensor* const inputs[] = {&regions};
    EXPECT_EQ(RunReference(OptimizeGraph(graph), inputs)[0].shape(), (Shape{0, 10}));
  }
  EXPECT_GT(ComputedNodes(one), 0);
}

TEST(SizesOfZero, ReductionsOfNothing) {
  const auto reduced = [](const std::string& type) {
    return F(TestNode(type).Input(None({2, 0, 2})).Attr("axes", IntList{1}).Evaluate());
  };
  for (const char* type : {"ReduceL1", "ReduceL2", "ReduceSumSquare"})
    EXPECT_THAT(reduced(type), ElementsAre(0, 0, 0, 0)) << type;
  EXPECT_THAT(reduced("ReduceProd"), Each(1));
  EXPECT_THAT(reduced("ReduceMax"), Each(-kInf));
  EXPECT_THAT(reduced("ReduceMin"), Each(kInf));
  EXPECT_THAT(reduced("ReduceLogSum"), Each(-kInf));
  EXPECT_THAT(reduced("ReduceLogSumExp"), Each(-kInf));
  EXPECT_THAT(reduced("ReduceMean"), Each(IsNan()));
  const TestNode sum = TestNode("ReduceSum").Input(None({0, 3})).Const(Ints({1}, {0}));
  EXPECT_THAT(F(sum.Evaluate()), ElementsAre(0, 0, 0));
  EXPECT_THAT(F(TestNode("ReduceSum").Input(None({0, 3})).Const(Ints({1}, {1})).Evaluate()), IsEmpty());
  // As images: mean and maximum over height and width.
  const auto pooled = [](const std::string& type) {
    return F(TestNode(type).Input(None({1, 2, 0, 3})).Attr("axes", IntList{2, 3}).Evaluate());
  };
  EXPECT_THAT(pooled("ReduceMean"), ElementsAre(IsNan(), IsNan()));
  EXPECT_THAT(pooled("ReduceMax"), ElementsAre(-kInf, -kInf));
}

TEST(SizesOfZero, ReductionsOfNoIntegers) {
  const auto reduced = [](const std::string& type, DataType of) {
    return I(TestNode(type).Input(None({1, 0}, of)).Attr("axes", IntList{1}).Evaluate());
  };
  EXPECT_THAT(reduced("ReduceMax", DataType::kI32), ElementsAre(INT32_MIN));
  EXPECT_THAT(reduced("ReduceMin", DataType::kI32), ElementsAre(INT32_MAX));
  EXPECT_THAT(reduced("ReduceMax", DataType::kU8), ElementsAre(0));
  EXPECT_THAT(reduced("ReduceMin", DataType::kI64), ElementsAre(INT64_MAX));
  EXPECT_THAT(reduced("ReduceMean", DataType::kI32), ElementsAre(0));
  EXPECT_THAT(reduced("ReduceProd", DataType::kI32), ElementsAre(1));
}

TEST(SizesOfZero, ProductsOverNothing) {
  EXPECT_THAT(F(TestNode("MatMul").Input(None({2, 0})).Const(None({0, 3})).Evaluate()),
              AllOf(testing::SizeIs(6), Each(0)));
  EXPECT_EQ(TestNode("MatMul").Input(None({1, 0, 4})).Const(Counting({4, 3})).Evaluate().shape(),
            (Shape{1, 0, 3}));
  const TestNode gemm = TestNode("Gemm")
                            .Attr("beta", 2.0f)
                            .Input(None({2, 0}))
                            .Const(None({0, 2}))
                            .Input(Floats({2, 2}, {1, 2, 3, 4}));
  EXPECT_THAT(F(gemm.Evaluate()), ElementsAre(2, 4, 6, 8));
  const TestNode einsum =
      TestNode("Einsum").Attr("equation", std::string("ij,k->i")).Input(Counting({2, 3})).Input(None({0}));
  EXPECT_THAT(F(einsum.Evaluate()), ElementsAre(0, 0));
}

TEST(SizesOfZero, ConvolutionsOfNothing) {
  const auto conv = [](const Shape& input, const Shape& weights) {
    return TestNode("Conv")
        .Attr("pads", IntList{1, 1, 1, 1})
        .Input(None(input))
        .Const(Tensor(weights))
        .Const(Counting({weights[0]}));
  };
  EXPECT_EQ(conv({0, 3, 8, 7}, {4, 3, 3, 3}).Evaluate().shape(), (Shape{0, 4, 8, 7}));
  EXPECT_EQ(conv({2, 3, 8, 7}, {0, 3, 3, 3}).Evaluate().shape(), (Shape{2, 0, 8, 7}));
  EXPECT_THAT(F(conv({2, 0, 1, 2}, {2, 0, 3, 3}).Evaluate()), ElementsAre(1, 1, 2, 2, 1, 1, 2, 2));
  EXPECT_THAT(conv({2, 3, 0, 8}, {4, 3, 3, 3}).Refusal(), HasSubstr("extends over 3 of 2 inputs"));
  EXPECT_THAT(conv({0, 3, 8, 8}, {4, 2, 3, 3}).Refusal(), HasSubstr("do not fit"));
  const TestNode transposed = TestNode("ConvTranspose")
                                  .Attr("strides", IntList{2, 2})
                                  .Input(None({0, 3, 4, 4}))
                                  .Const(Tensor({3, 5, 2, 2}));
  EXPECT_EQ(transposed.Evaluate().shape(), (Shape{0, 5, 8, 8}));
  const TestNode volume = TestNode("Conv").Input(None({0, 3, 8, 8, 8})).Const(Tensor({4, 3, 3, 3, 3}));
  EXPECT_EQ(volume.Evaluate().shape(), (Shape{0, 4, 6, 6, 6}));
  const TestNode pool =
      TestNode("MaxPool").Attr("kernel_shape", IntList{2, 2, 2}).Input(None({0, 3, 8, 8, 8}));
  EXPECT_EQ(pool.Evaluate().shape(), (Shape{0, 3, 7, 7, 7}));
}

TEST(SizesOfZero, ShapesOfNothing) {
  const auto reshaped = [](const Shape& from, const std::vector<int64_t>& to, int64_t allowzero) {
    return TestNode("Reshape", 14)
        .Attr("allowzero", allowzero)
        .Input(None(from))
        .Const(Ints({std::ssize(to)}, to));
  };
  EXPECT_EQ(reshaped({0, 3, 4}, {3, 4, 0}, 1).Evaluate().shape(), (Shape{3, 4, 0}));
  EXPECT_EQ(reshaped({0, 3, 4}, {0, 12}, 0).Evaluate().shape(), (Shape{0, 12}));
  EXPECT_EQ(reshaped({0, 3, 4}, {0, -1}, 0).Evaluate().shape(), (Shape{0, 12}));
  EXPECT_EQ(reshaped({2, 0, 4}, {-1, 7}, 0).Evaluate().shape(), (Shape{0, 7}));
  EXPECT_THAT(reshaped({2, 3}, {0, 3}, 1).Refusal(), HasSubstr("6 elements as 0x3"));
  EXPECT_THAT(reshaped({0, 3}, {0, 3, -1}, 1).Refusal(), HasSubstr("negative"));
  EXPECT_THAT(reshaped({0, 3}, {3, 1}, 0).Refusal(), HasSubstr("cannot view"));
  EXPECT_EQ(TestNode("Flatten").Attr("axis", int64_t{2}).Input(None({3, 0, 5})).Evaluate().shape(),
            (Shape{0, 5}));
  const auto resized = [](const std::vector<int64_t>& sizes) {
    return TestNode("Resize").Input(None({0, 3, 4, 4})).Absent().Absent().Const(Ints({4}, sizes));
  };
  EXPECT_EQ(resized({0, 3, 8, 8}).Evaluate().shape(), (Shape{0, 3, 8, 8}));
  EXPECT_THAT(resized({1, 3, 8, 8}).Refusal(), HasSubstr("1 elements of 0"));
  const TestNode shuffled = TestNode("DepthToSpace").Attr("blocksize", int64_t{2}).Input(None({1, 4, 0, 3}));
  EXPECT_EQ(shuffled.Evaluate().shape(), (Shape{1, 1, 0, 6}));
}

TEST(SizesOfZero, MovesOfNothing) {
  EXPECT_THAT(
      F(TestNode("Pad").Input(None({0, 2})).Const(Ints({4}, {1, 0, 0, 1})).Const(Floats({}, {7})).Evaluate()),
      ElementsAre(7, 7, 7));
  EXPECT_EQ(TestNode("Pad").Input(Counting({3})).Const(Ints({2}, {-1, -2})).Evaluate().shape(), (Shape{0}));
  EXPECT_THAT(F(TestNode("Concat")
                    .Attr("axis", int64_t{1})
                    .Input(None({2, 0}))
                    .Input(Counting({2, 2}))
                    .Const(None({2, 0}))
                    .Evaluate()),
              ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(
      TestNode("Concat").Attr("axis", int64_t{1}).Input(None({3, 0})).Input(Counting({2, 2})).Refusal(),
      HasSubstr("Concat along axis 1 of 3x0 and 2x2"));
  EXPECT_EQ(TestNode("Gather").Input(Counting({4, 5})).Const(None({0}, DataType::kI64)).Evaluate().shape(),
            (Shape{0, 5}));
  EXPECT_THAT(TestNode("Gather").Input(None({0, 5})).Const(Ints({1}, {0})).Refusal(),
              HasSubstr("outside axis 0 of 0x5"));
  EXPECT_EQ(TestNode("Expand").Input(Counting({4, 1})).Const(Ints({2}, {4, 0})).Evaluate().shape(),
            (Shape{4, 0}));
  EXPECT_EQ(TestNode("Add").Input(None({3, 0})).Input(Counting({3, 1})).Evaluate().shape(), (Shape{3, 0}));
  EXPECT_THAT(TestNode("Add").Input(None({3, 0})).Input(Counting({3, 2})).Refusal(),
              HasSubstr("do not broadcast"));
  EXPECT_EQ(
      TestNode("TopK").Attr("axis", int64_t{0}).Input(Counting({3})).Const(Ints({1}, {0})).Evaluate().shape(),
      (Shape{0}));
  EXPECT_EQ(TestNode("Hardmax").Attr("axis", int64_t{1}).Input(None({2, 0})).Evaluate().shape(),
            (Shape{2, 0}));
  EXPECT_EQ(TestNode("NonZero").Const(None({2, 0})).Evaluate().shape(), (Shape{2, 0}));
  EXPECT_EQ(TestNode("Softmax").Attr("axis", int64_t{1}).Input(None({2, 0})).Evaluate().shape(),
            (Shape{2, 0}));
  const TestNode regions = TestNode("RoiAlign", 16)
                               .Attr("output_height", int64_t{2})
                               .Attr("output_width", int64_t{3})
                               .Input(Counting({1, 2, 4, 4}))
                               .Input(None({0, 4}))
                               .Input(None({0}, DataType::kI64));
  EXPECT_EQ(regions.Evaluate().shape(), (Shape{0, 2, 2, 3}));
  const TestNode boxes =
      TestNode("NonMaxSuppression").Const(None({1, 0, 4})).Const(None({1, 2, 0})).Const(Ints({}, {5}));
  EXPECT_EQ(boxes.Evaluate().shape(), (Shape{0, 3}));
}

// What reads nothing beside something is computed by the op's reference, and keeps its plain layout.
TEST(SizesOfZero, ScatteringNothingChangesNothing) {
  OnnxModel model(18);
  model.Input("x", {1, 2, 2, 2});
  model.Input("updates", {0, 2, 2, 2});
  model.Weight("indices", {0, 1}, onnx::TensorProto::INT64);
  model.Node("ScatterND", {"x", "indices", "updates"}, {"y"});
  model.Node("ReduceSum", {"updates"}, {"sum"});
  model.Node("Add", {"y", "sum"}, {"z"});
  model.Output("z");
  const Graph graph = model.Import();
  EXPECT_EQ(ComputedNodes(graph), 2);
  const Tensor x = Counting({1, 2, 2, 2}), updates = None({0, 2, 2, 2});
  const Tensor* const inputs[] = {&x, &updates};
  EXPECT_EQ(F(RunReference(graph, inputs)[0]), F(x));
}

// A body of one carried value, which is stacked as {2, open}.
TEST(SizesOfZero, NoIterationsStackWhatTheBodyDeclares) {
  OnnxModel model(17);
  model.Input("carried", {2, 3});
  model.Ints("none", {0});
  onnx::GraphProto* body = nullptr;
  {
    onnx::NodeProto& loop = model.Node("Loop", {"none", "", "carried"}, {"last", "stacked"});
    onnx::AttributeProto* attribute = loop.add_attribute();
    attribute->set_name("body");
    attribute->set_type(onnx::AttributeProto::GRAPH);
    body = attribute->mutable_g();
  }
  for (const char* name : {"iteration", "condition", "value"}) body->add_input()->set_name(name);
  for (const char* name : {"condition", "value", "value"}) body->add_output()->set_name(name);
  onnx::TypeProto_Tensor* type = body->mutable_output(2)->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  type->mutable_shape()->add_dim()->set_dim_value(2);
  type->mutable_shape()->add_dim()->set_dim_param("open");
  model.Output("last");
  model.Output("stacked");
  const Graph graph = model.Import();
  EXPECT_EQ(graph.node(graph.outputs()[0]).shape, (Shape{2, 3}));
  EXPECT_EQ(graph.node(graph.outputs()[1]).shape, (Shape{0, 2, 0}));
  type->set_elem_type(onnx::TensorProto::UNDEFINED);
  EXPECT_THAT([&] { model.Import(); }, testing::ThrowsMessage<Error>(HasSubstr("no declaration")));
}

TEST(SizesOfZero, ASizeOfZeroIsNoOpenOne) {
  const OnnxModel model = SecondStage({0, 3, 8, 8});
  EXPECT_EQ(model.Import({.batch = 2}).GraphInputs().size(), 1u);
  EXPECT_THAT(
      [] {
        SecondStage({0, 3, 0, 8}).Import();
      },
      testing::ThrowsMessage<Error>(HasSubstr("extends over 3 of 2 inputs")));
  EXPECT_THAT(
      [] {
        SecondStage({"n", 3, 8, 8}).Import({.input_shapes = {{"regions", {-1, 3, 8, 8}}}});
      },
      testing::ThrowsMessage<Error>(HasSubstr("must not be negative")));
}

}  // namespace
}  // namespace tilesmith
