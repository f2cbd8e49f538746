// Operators in terms of others, bodies that are inlined and unrolled, and the tail of what depends on values.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "tests/ops/test_node.h"
#include "tests/support/ops/written_model.h"

namespace tilesmith {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

onnx::AttributeProto& Attribute(onnx::NodeProto& node, const std::string& name,
                                onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(type);
  return *attribute;
}

onnx::GraphProto& Body(onnx::NodeProto& node, const std::string& name) {
  return *Attribute(node, name, onnx::AttributeProto::GRAPH).mutable_g();
}

void AddNode(onnx::GraphProto& graph, const std::string& type, const std::vector<std::string>& inputs,
             const std::string& output) {
  onnx::NodeProto* node = graph.add_node();
  node->set_op_type(type);
  for (const std::string& input : inputs) node->add_input(input);
  node->add_output(output);
}

TEST(WrittenNodes, LogicOfEveryKind) {
  const Tensor a = Ints({3}, {-7, 7, 5}), b = Ints({3}, {3, -3, 5});
  EXPECT_THAT(I(TestNode("Mod").Input(a).Input(b).Evaluate()), ElementsAre(2, -2, 0));
  EXPECT_THAT(I(TestNode("Mod").Attr("fmod", int64_t{1}).Input(a).Input(b).Evaluate()),
              ElementsAre(-1, 1, 0));
  EXPECT_THAT(I(TestNode("Less").Input(a).Input(b).Evaluate()), ElementsAre(1, 0, 0));
  EXPECT_EQ(TestNode("GreaterOrEqual").Input(a).Input(b).Evaluate().type(), DataType::kBool);
  EXPECT_THAT(I(TestNode("Max").Input(a).Input(b).Input(Ints({}, {4})).Evaluate()), ElementsAre(4, 7, 5));
  EXPECT_THAT(I(TestNode("Clip").Input(a).Absent().Const(Ints({}, {6})).Evaluate()), ElementsAre(-7, 6, 5));
  EXPECT_THAT(I(TestNode("ReduceProd").Input(a).Evaluate()), ElementsAre(-245));
  const Tensor bits = Bools({2}, {true, false});
  EXPECT_THAT(I(TestNode("Xor").Input(bits).Input(Bools({1}, {true})).Evaluate()), ElementsAre(0, 1));
  EXPECT_THAT(TestNode("And").Input(a).Input(b).Refusal(), HasSubstr("bools"));
  EXPECT_THAT(TestNode("Mod").Input(a).Input(Ints({}, {0})).Refusal(), HasSubstr("zero"));
  EXPECT_THAT(
      F(TestNode("Where").Input(bits).Input(Floats({1}, {1})).Input(Floats({2, 1}, {2, 3})).Evaluate()),
      ElementsAre(1, 2, 1, 3));
}

TEST(WrittenNodes, IndicesOutsideTheirAxisAreRefused) {
  const Tensor data = Counting({2, 3});
  EXPECT_THAT(F(TestNode("GatherND").Input(data).Input(Ints({2, 2}, {0, -1, 1, 0})).Evaluate()),
              ElementsAre(3, 4));
  EXPECT_THAT(TestNode("GatherND").Input(data).Input(Ints({1, 2}, {0, 3})).Refusal(), HasSubstr("index 3"));
  EXPECT_THAT(TestNode("GatherND").Input(data).Input(Ints({1, 3}, {0, 0, 0})).Refusal(),
              HasSubstr("do not fit"));
  EXPECT_THAT(TestNode("ScatterND").Input(data).Input(Ints({1, 1}, {-3})).Input(Counting({1, 3})).Refusal(),
              HasSubstr("index -3"));
  EXPECT_THAT(TestNode("ScatterElements")
                  .Input(data)
                  .Input(Ints({1, 1}, {INT64_MIN}))
                  .Input(Counting({1, 1}))
                  .Refusal(),
              HasSubstr("outside"));
  EXPECT_THAT(TestNode("MaxUnpool")
                  .Attr("kernel_shape", IntList{1})
                  .Input(Counting({1, 1, 1}))
                  .Input(Ints({1, 1, 1}, {1}))
                  .Refusal(),
              HasSubstr("outside the output"));
}

// Whole slices that go one way, as exporters write them, and slices that are narrower than the data's.
TEST(WrittenNodes, ElementsAreGatheredAndScatteredWhereTheirOwnIndexSays) {
  const Shape data_shape = {5, 3, 4};
  const Tensor data = Counting(data_shape);
  for (const Shape& shape : {Shape{2, 3, 4}, Shape{2, 2, 4}, Shape{2, 3, 3}}) {
    for (const int odd : {-1, 0, 7}) {  // which index differs from its slice's
      std::vector<int64_t> indices(ElementCount(shape));
      const int64_t slice = shape[1] * shape[2];
      for (int64_t i = 0; i < std::ssize(indices); ++i) indices[i] = i == odd ? -2 : 4 - i / slice;
      std::vector<float> gathered, scattered(data.floats(), data.floats() + data.size());
      for (int64_t i = 0; i < std::ssize(indices); ++i) {
        const int64_t at = (((indices[i] + 5) % 5) * 3 + i / shape[2] % shape[1]) * 4 + i % shape[2];
        gathered.push_back(data.floats()[at]);
        scattered[at] += static_cast<float>(i) + 1;
      }
      const Tensor chosen = Ints(shape, indices);
      EXPECT_EQ(F(TestNode("GatherElements").Input(data).Input(chosen).Evaluate()), gathered);
      EXPECT_EQ(F(TestNode("ScatterElements")
                      .Attr("reduction", "add")
                      .Input(data)
                      .Input(chosen)
                      .Input(Counting(shape))
                      .Evaluate()),
                scattered);
    }
  }
}

TEST(WrittenNodes, ThreeDimensionalConvIsTheSumOverItsTaps) {
  constexpr int64_t kIn = 2, kOut = 4, kDepth = 5, kSize = 4;
  const Tensor x = Counting({1, kIn, kDepth, kSize, kSize}), w = Counting({kOut, 1, 3, 2, 1});
  const Tensor y = TestNode("Conv")
                       .Attr("group", int64_t{2})
                       .Attr("strides", IntList{2, 1, 2})
                       .Attr("dilations", IntList{1, 2, 1})
                       .Attr("pads", IntList{1, 0, 0, 2, 1, 0})
                       .Input(x)
                       .Const(w)
                       .Evaluate();
  ASSERT_EQ(y.shape(), (Shape{1, kOut, 3, 3, 2}));
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t o = i / 18, d = i / 6 % 3, row = i / 2 % 3, column = i % 2;
    double sum = 0;
    for (int64_t tap = 0; tap < 6; ++tap) {
      const int64_t at_d = d * 2 - 1 + tap / 2, at_row = row + tap % 2 * 2;
      if (at_d < 0 || at_d >= kDepth || at_row >= kSize) continue;
      sum += static_cast<double>(w.floats()[o * 6 + tap]) *
             x.floats()[((o / 2 * kDepth + at_d) * kSize + at_row) * kSize + column * 2];
    }
    EXPECT_FLOAT_EQ(y.floats()[i], static_cast<float>(sum)) << i;
  }
}

TEST(WrittenNodes, WeightsStandardisedByABatchNormAreConstant) {
  OnnxModel model(15);
  model.Input("x", {1, 1, 1, 1});
  model.Floats("w", {1, 2, 2}, {1, 3, 5, 9});
  for (const char* name : {"scale", "shift", "mean", "variance"}) model.Floats(name, {2}, {1, 1});
  onnx::NodeProto& norm =
      model.Node("BatchNormalization", {"w", "scale", "shift", "mean", "variance"}, {"n"});
  SetInt(norm, "training_mode", 1);
  Attribute(norm, "epsilon", onnx::AttributeProto::FLOAT).set_f(0);
  model.Ints("shape", {4, 1, 1, 1});
  model.Node("Reshape", {"n", "shape"}, {"k"});
  model.Node("Conv", {"x", "k"}, {"y"});
  model.Output("y");
  EXPECT_THAT(F(Outputs(model, {Floats({1, 1, 1, 1}, {1})})[0]), ElementsAre(0, 2, 0, 2));
}

TEST(WrittenNodes, EinsumIsAMatMulWhereItIsOne) {
  const Tensor a = Counting({2, 3}), b = Counting({3, 2});
  const auto einsum = [](const std::string& equation) {
    return TestNode("Einsum").Attr("equation", equation);
  };
  EXPECT_THAT(F(einsum("ij,jk->ki").Input(a).Input(b).Evaluate()), ElementsAre(22, 49, 28, 64));
  EXPECT_THAT(F(einsum("ij->j").Input(a).Evaluate()), ElementsAre(5, 7, 9));
  EXPECT_THAT(F(einsum("ii").Input(Counting({2, 2})).Evaluate()), ElementsAre(5));
  EXPECT_THAT(F(einsum("...i,...i->...").Input(a).Input(a).Evaluate()), ElementsAre(14, 77));
  EXPECT_THAT(
      F(einsum("i,j,k->kji").Input(Counting({2})).Input(Counting({1})).Input(Counting({2})).Evaluate()),
      ElementsAre(1, 2, 2, 4));
  EXPECT_THAT(einsum("ij,ij->k").Input(a).Input(a).Refusal(), HasSubstr("result"));
  EXPECT_THAT(einsum("i$->i").Input(a).Refusal(), HasSubstr("equation"));
  EXPECT_THAT(einsum("ij,jk->ik").Input(a).Input(a).Refusal(), HasSubstr("one name"));
}

TEST(WrittenNodes, MicrosoftsFusedOperators) {
  OnnxModel model;
  model.Input("x", {1, 1, 1, 2});
  model.Floats("w", {1, 1, 1, 1}, {2});
  model.Floats("b", {1}, {-3});
  onnx::NodeProto& conv = model.Node("FusedConv", {"x", "w", "b", "x"}, {"c"});
  conv.set_domain("com.microsoft");
  Attribute(conv, "activation", onnx::AttributeProto::STRING).set_s("Relu");
  onnx::NodeProto& product = model.Node("FusedMatMul", {"c", "x"}, {"y"});
  product.set_domain("com.microsoft");
  SetInt(product, "transA", 1);
  Attribute(product, "alpha", onnx::AttributeProto::FLOAT).set_f(0.5f);
  model.Output("y");
  EXPECT_THAT(F(Outputs(model, {Floats({1, 1, 1, 2}, {0, 2})})[0]), ElementsAre(0, 0, 0, 3));
  onnx::NodeProto& other = model.Node("Mystery", {"x"}, {"z"});
  other.set_domain("com.microsoft");
  EXPECT_THAT(ImportError(model), HasSubstr("com.microsoft.Mystery"));
}

// count times: state = state * 2, and the state is stacked.
OnnxModel LoopModel() {
  OnnxModel model;
  model.Input("x", {2});
  onnx::NodeProto& loop = model.Node("Loop", {"count", "", "x"}, {"last", "all"});
  onnx::GraphProto& body = Body(loop, "body");
  for (const char* name : {"i", "go", "state"}) body.add_input()->set_name(name);
  AddNode(body, "Add", {"state", "state"}, "twice");
  AddNode(body, "Identity", {"go"}, "goes_on");
  for (const char* name : {"goes_on", "twice", "twice"}) body.add_output()->set_name(name);
  model.Output("last");
  model.Output("all");
  return model;
}

TEST(WrittenNodes, LoopsAreUnrolled) {
  OnnxModel model = LoopModel();
  model.Weight("count", {}, onnx::TensorProto::INT64).add_int64_data(3);
  const std::vector<Tensor> outputs = Outputs(model, {Floats({2}, {1, 5})});
  EXPECT_THAT(F(outputs[0]), ElementsAre(8, 40));
  EXPECT_EQ(outputs[1].shape(), (Shape{3, 2}));
  EXPECT_THAT(F(outputs[1]), ElementsAre(2, 10, 4, 20, 8, 40));
  OnnxModel endless = LoopModel();
  endless.Weight("count", {}, onnx::TensorProto::INT64).add_int64_data(INT64_MAX);
  EXPECT_THAT(ImportError(endless), AllOf(HasSubstr("Loop"), HasSubstr("amount to more than")));
}

TEST(WrittenNodes, TheBranchThatIsTakenIsInlined) {
  for (const bool condition : {false, true}) {
    OnnxModel model;
    model.Input("x", {1});
    model.Weight("condition", {}, onnx::TensorProto::BOOL).add_int32_data(condition);
    onnx::NodeProto& branch = model.Node("If", {"condition"}, {"y"});
    onnx::GraphProto &yes = Body(branch, "then_branch"), &no = Body(branch, "else_branch");
    AddNode(yes, "Neg", {"x"}, "minus");
    yes.add_output()->set_name("minus");
    AddNode(no, "Frobnicate", {"x"}, "unknown");  // nobody looks at it
    no.add_output()->set_name(condition ? "unknown" : "x");
    if (!condition) no.clear_node();
    model.Output("y");
    EXPECT_THAT(F(Outputs(model, {Floats({1}, {3})})[0]), ElementsAre(condition ? -3 : 3));
  }
}

TEST(WrittenNodes, WhatDependsOnValuesIsTheTail) {
  OnnxModel model;
  model.Input("x", {6});
  model.Node("Abs", {"x"}, {"abs"});
  model.Floats("limit", {}, {2});
  model.Node("Greater", {"abs", "limit"}, {"mask"});
  model.Node("NonZero", {"mask"}, {"indices"});
  model.Ints("zero", {0});
  model.Node("Squeeze", {"indices", "zero"}, {"flat"});
  model.Node("Gather", {"abs", "flat"}, {"chosen"});
  model.Node("Shape", {"chosen"}, {"count"});
  model.Node("ReduceSum", {"abs"}, {"sum"});
  for (const char* name : {"chosen", "count", "sum"}) model.Output(name);
  const Graph graph = OptimizeGraph(model.Import());
  ASSERT_NE(graph.tail(), nullptr);
  EXPECT_THAT(graph.tail()->outputs(), ElementsAre("chosen", "count", "sum"));
  for (const auto& [x, chosen] :
       {std::pair<std::vector<float>, std::vector<float>>({1, -3, 0, 4, 2, 5}, {3, 4, 5}),
        {{0, 0, 0, 0, 0, 0}, {}}}) {
    const std::vector<Tensor> outputs = Outputs(model, {Floats({6}, x)});
    EXPECT_THAT(F(outputs[0]), ElementsAreArray(chosen));
    EXPECT_THAT(I(outputs[1]), ElementsAre(std::ssize(chosen)));
    EXPECT_EQ(outputs[2].size(), 1);
  }
  model.Node("Frobnicate", {"chosen"}, {"unknown"}, "late");
  EXPECT_THAT(ImportError(model), HasSubstr("Frobnicate (node \"late\")"));
}

TEST(WrittenNodes, StatisticsOfLayerNormalizationAreOutputs) {
  OnnxModel model(17);
  model.Input("x", {1, 4});
  model.Floats("scale", {4}, {1, 1, 1, 2});
  model.Node("LayerNormalization", {"x", "scale"}, {"y", "mean", "factor"});
  for (const char* name : {"y", "mean", "factor"}) model.Output(name);
  const std::vector<Tensor> outputs = Outputs(model, {Floats({1, 4}, {1, 3, 5, 7})});
  EXPECT_NEAR(outputs[0].floats()[3], 2 * 3 / std::sqrt(5.0), 1e-4);
  EXPECT_THAT(F(outputs[1]), ElementsAre(4));
  EXPECT_NEAR(outputs[2].floats()[0], 1 / std::sqrt(5.0), 1e-5);
}

TEST(WrittenNodes, IntegersHaveSignsToo) {
  const Tensor x = Ints({4}, {-3, 0, 2, INT64_MIN + 1});
  EXPECT_THAT(I(TestNode("Neg").Input(x).Evaluate()), ElementsAre(3, 0, -2, INT64_MAX));
  EXPECT_THAT(I(TestNode("Abs").Input(x).Evaluate()), ElementsAre(3, 0, 2, INT64_MAX));
  EXPECT_THAT(I(TestNode("Sign").Input(x).Evaluate()), ElementsAre(-1, 0, 1, -1));
  EXPECT_THAT(TestNode("Sin").Input(x).Refusal(), HasSubstr("integers are not supported"));
  EXPECT_THAT(I(TestNode("Pow").Input(Ints({2}, {2, 3})).Input(Floats({}, {2})).Evaluate()),
              ElementsAre(4, 9));
  EXPECT_THAT(
      F(TestNode("Mean").Input(Counting({2})).Input(Counting({2})).Input(Floats({1}, {4})).Evaluate()),
      ElementsAre(2, 8.0f / 3));
}

// Equal ones in the order of their indices, as in ONNX Runtime.
TEST(WrittenNodes, TiesAreBrokenByTheLowerIndex) {
  const Tensor x = Floats({2, 6}, {1, 3, 3, 2, 3, 1, 0, 0, 0, 0, 0, 0});
  const auto top = [&](int64_t largest) {
    TestNode node("TopK");
    node.Attr("largest", largest).Input(x).Const(Ints({1}, {4}));
    node.spec.output = 1;
    return I(node.Evaluate());
  };
  EXPECT_THAT(top(1), ElementsAre(1, 2, 4, 3, 0, 1, 2, 3));
  EXPECT_THAT(top(0), ElementsAre(0, 5, 3, 1, 0, 1, 2, 3));
  EXPECT_THAT(I(TestNode("ArgMax").Attr("axis", int64_t{1}).Input(x).Evaluate()), ElementsAre(1, 0));
  EXPECT_THAT(I(TestNode("ArgMin").Attr("axis", int64_t{1}).Input(x).Evaluate()), ElementsAre(0, 0));
  std::vector<float> boxes;
  for (const float at : {0.0f, 2.0f, 4.0f, 2.0f}) boxes.insert(boxes.end(), {at, at, at + 1, at + 1});
  EXPECT_THAT(I(TestNode("NonMaxSuppression")
                    .Const(Floats({1, 4, 4}, boxes))
                    .Const(Floats({1, 1, 4}, {0.5f, 0.5f, 0.9f, 0.5f}))
                    .Const(Ints({1}, {4}))
                    .Const(Floats({1}, {0.5f}))
                    .Evaluate()),
              ElementsAre(0, 0, 2, 0, 0, 0, 0, 0, 1));
}

TEST(WrittenNodes, NotANumberIsOneValueOfThoseThatAreDistinct) {
  EXPECT_THAT(F(TestNode("Unique").Const(Floats({5}, {2, kNan, 1, kNan, 2})).Evaluate()),
              ElementsAre(1, 2, testing::IsNan()));
}

TEST(WrittenNodes, SuppressionKeepsTheBestOfWhatOverlaps) {
  const Tensor boxes = Floats({1, 3, 4}, {0, 0, 1, 1, 1, 0.9f, 0, 0, 5, 5, 6, 6});
  const Tensor scores = Floats({1, 1, 3}, {0.5f, 0.9f, 0.7f});
  const auto node = [&](int64_t most, float score) {
    return TestNode("NonMaxSuppression")
        .Const(boxes)
        .Const(scores)
        .Const(Ints({1}, {most}))
        .Const(Floats({1}, {0.5f}))
        .Const(Floats({1}, {score}));
  };
  EXPECT_THAT(I(node(10, 0).Evaluate()), ElementsAre(0, 0, 1, 0, 0, 2));
  EXPECT_THAT(I(node(10, 0.8f).Evaluate()), ElementsAre(0, 0, 1));
  EXPECT_EQ(node(0, 0).Evaluate().shape(), (Shape{0, 3}));
  EXPECT_EQ(node(-1, 0).Evaluate().shape(), (Shape{0, 3}));
}

TEST(WrittenNodes, FunctionsAreInlined) {
  OnnxModel model;
  onnx::FunctionProto& function = *model.proto.add_functions();
  function.set_name("Twice");
  function.set_domain("local");
  function.add_input("a");
  function.add_output("b");
  function.add_attribute("slope");
  function.add_opset_import()->set_version(13);
  onnx::NodeProto& leaky = *function.add_node();
  leaky.set_op_type("LeakyRelu");
  leaky.add_input("a");
  leaky.add_output("t");
  Attribute(leaky, "alpha", onnx::AttributeProto::FLOAT).set_ref_attr_name("slope");
  onnx::NodeProto& add = *function.add_node();
  add.set_op_type("Add");
  add.add_input("t");
  add.add_input("t");
  add.add_output("b");
  model.Input("x", {2});
  for (const auto& [from, to] : {std::pair<const char*, const char*>("x", "t"), {"t", "y"}}) {
    onnx::NodeProto& call = model.Node("Twice", {from}, {to});
    call.set_domain("local");
    Attribute(call, "slope", onnx::AttributeProto::FLOAT).set_f(0.5f);
  }
  model.Output("y");
  EXPECT_THAT(F(Outputs(model, {Floats({2}, {-1, 1})})[0]), ElementsAre(-1, 4));
}

TEST(WrittenNodes, AFunctionThatCallsItselfIsRefused) {
  OnnxModel model;
  onnx::FunctionProto& function = *model.proto.add_functions();
  function.set_name("Again");
  function.set_domain("local");
  function.add_input("a");
  function.add_output("b");
  onnx::NodeProto& call = *function.add_node();
  call.set_op_type("Again");
  call.set_domain("local");
  call.add_input("a");
  call.add_output("b");
  model.Input("x", {1});
  model.Node("Again", {"x"}, {"y"}).set_domain("local");
  model.Output("y");
  EXPECT_THAT(ImportError(model), HasSubstr("its function \"local.Again\" calls itself"));
}

TEST(WrittenNodes, FunctionsCallEachOtherOnlySoDeep) {
  OnnxModel model;
  const auto name = [](int i) { return "F" + std::to_string(i); };
  for (int i = 0; i < 100'000; ++i) {
    onnx::FunctionProto& function = *model.proto.add_functions();
    function.set_name(name(i));
    function.set_domain("local");
    onnx::NodeProto& call = *function.add_node();
    call.set_op_type(name(i + 1));
    call.set_domain("local");
  }
  model.Input("x", {1});
  model.Node("Identity", {"x"}, {"y"});
  model.Output("y");
  EXPECT_THAT(ImportError(model), HasSubstr("its functions call each other over 256 deep"));
}

TEST(WrittenNodes, OneLineForEachOperatorThatIsNotSupported) {
  OnnxModel model;
  model.Input("x", {1});
  for (const char* name : {"a", "b", "c"})
    model.Node("Frobnicate", {"x"}, {name}, std::string("node_") + name);
  model.Output("c");
  EXPECT_THAT(ImportError(model), HasSubstr("Frobnicate (3 nodes, the first \"node_a\"): the operator"));
}

TEST(WrittenNodes, HostileSizesAreRefused) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  const Tensor x = Counting({1, 1, 2, 2});
  EXPECT_THAT(TestNode("Tile").Const(x).Const(Ints({4}, {kHuge, kHuge, 1, 1})).Refusal(), HasSubstr("*"));
  EXPECT_THAT(TestNode("OneHot").Const(Ints({}, {1})).Const(Ints({}, {kHuge})).Const(Counting({2})).Refusal(),
              HasSubstr("1099511627776"));
  EXPECT_THAT(TestNode("TopK").Const(x).Const(Ints({1}, {kHuge})).Refusal(), HasSubstr("of 2 elements"));
  EXPECT_THAT(TestNode("TopK").Const(x).Const(Ints({1}, {-1})).Refusal(), HasSubstr("of 2 elements"));
  EXPECT_THAT(TestNode("CenterCropPad").Const(x).Const(Ints({4}, {kHuge, kHuge, kHuge, kHuge})).Refusal(),
              HasSubstr("1099511627776"));
  EXPECT_THAT(
      TestNode("AffineGrid").Const(Counting({1, 2, 3})).Const(Ints({4}, {1, 1, kHuge, kHuge})).Refusal(),
      HasSubstr("1099511627776"));
  EXPECT_THAT(TestNode("RoiAlign")
                  .Attr("output_height", kHuge)
                  .Attr("output_width", kHuge)
                  .Const(x)
                  .Const(Counting({1, 4}))
                  .Const(Ints({1}, {0}))
                  .Refusal(),
              HasSubstr("1099511627776"));
  EXPECT_THAT(TestNode("LpPool").Attr("kernel_shape", IntList{1 << 24, 1 << 24}).Const(x).Refusal(),
              HasSubstr("16777216"));
  Tensor many(Shape{1, 20000, 4}), scores(Shape{1, 1, 20000});
  EXPECT_THAT(TestNode("NonMaxSuppression").Const(many).Const(scores).Const(Ints({1}, {20000})).Refusal(),
              HasSubstr("operations at load time"));
}

}  // namespace
}  // namespace tilesmith
