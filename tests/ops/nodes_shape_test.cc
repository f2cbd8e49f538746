// Importers and references of the ops that only move elements or compute shapes, by hand.
#include <gmock/gmock.h>

#include <cmath>

#include "ops/base/onnx_type.h"
#include "ops/elementwise/binary.h"
#include "ops/movement/indexing.h"
#include "ops/pool/pool.h"
#include "tests/ops/test_node.h"

namespace tilesmith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Nodes, Views) {
  const Tensor x = Counting({2, 1, 3});
  const auto shape = [](const TestNode& node) { return node.Evaluate().shape(); };
  EXPECT_EQ(shape(TestNode("Reshape").Input(x).Const(Ints({3}, {0, -1, 1}))), (Shape{2, 3, 1}));
  EXPECT_EQ(shape(TestNode("Flatten").Attr("axis", int64_t{-1}).Input(x)), (Shape{2, 3}));
  EXPECT_EQ(shape(TestNode("Flatten").Attr("axis", int64_t{0}).Input(x)), (Shape{1, 6}));
  EXPECT_EQ(shape(TestNode("Squeeze", 11).Attr("axes", IntList{1}).Input(x)), (Shape{2, 3}));
  EXPECT_EQ(shape(TestNode("Squeeze").Input(x).Const(Ints({1}, {-2}))), (Shape{2, 3}));
  EXPECT_EQ(shape(TestNode("Squeeze").Input(x)), (Shape{2, 3}));
  EXPECT_EQ(shape(TestNode("Unsqueeze").Input(x).Const(Ints({2}, {-1, 0}))), (Shape{1, 2, 1, 3, 1}));
  EXPECT_EQ(shape(TestNode("Dropout").Input(x).Const(Floats({}, {0.5f}))), x.shape());
  EXPECT_THAT(I(TestNode("Unsqueeze", 11).Attr("axes", IntList{0}).Input(Ints({}, {4})).Evaluate()),
              ElementsAre(4));
  EXPECT_THAT(TestNode("Reshape").Input(x).Const(Ints({2}, {4, -1})).Refusal(),
              HasSubstr("cannot view 2x1x3"));
  EXPECT_THAT(TestNode("Reshape").Input(x).Input(Ints({1}, {6})).Refusal(), HasSubstr("must be constant"));
  EXPECT_THAT(TestNode("Squeeze").Input(x).Const(Ints({1}, {0})).Refusal(), HasSubstr("not of size 1"));
}

TEST(Nodes, PadModes) {
  const Tensor x = Counting({3});
  EXPECT_THAT(F(TestNode("Pad").Input(x).Const(Ints({2}, {1, 2})).Const(Floats({}, {9})).Evaluate()),
              ElementsAre(9, 1, 2, 3, 9, 9));
  EXPECT_THAT(F(TestNode("Pad", 10)
                    .Attr("mode", std::string("reflect"))
                    .Attr("pads", IntList{2, 2})
                    .Input(x)
                    .Evaluate()),
              ElementsAre(3, 2, 1, 2, 3, 2, 1));
  EXPECT_THAT(
      F(TestNode("Pad").Attr("mode", std::string("edge")).Input(x).Const(Ints({2}, {1, -1})).Evaluate()),
      ElementsAre(1, 1, 2));
  const TestNode axes =
      TestNode("Pad", 18).Input(Counting({1, 2})).Const(Ints({2}, {1, 0})).Absent().Const(Ints({1}, {-1}));
  EXPECT_THAT(F(axes.Evaluate()), ElementsAre(0, 1, 2));
  EXPECT_THAT(TestNode("Pad").Attr("mode", std::string("wrap")).Input(x).Const(Ints({2}, {1, 1})).Refusal(),
              HasSubstr("wrap"));
  EXPECT_THAT(
      TestNode("Pad").Attr("mode", std::string("reflect")).Input(x).Const(Ints({2}, {3, 0})).Refusal(),
      HasSubstr("cannot apply"));
}

TEST(Nodes, TransposeAndReduceMean) {
  EXPECT_THAT(F(TestNode("Transpose").Input(Counting({2, 3})).Evaluate()), ElementsAre(1, 4, 2, 5, 3, 6));
  const Tensor t = TestNode("Transpose").Attr("perm", IntList{1, 2, 0}).Input(Counting({2, 1, 3})).Evaluate();
  EXPECT_EQ(t.shape(), (Shape{1, 3, 2}));
  EXPECT_THAT(F(t), ElementsAre(1, 4, 2, 5, 3, 6));
  const Tensor from_end =
      TestNode("Transpose").Attr("perm", IntList{1, -1, -3}).Input(Counting({2, 1, 3})).Evaluate();
  EXPECT_EQ(from_end.shape(), t.shape());
  EXPECT_THAT(TestNode("Transpose").Attr("perm", IntList{0, 0}).Input(Counting({1, 1})).Refusal(),
              HasSubstr("twice"));
  const Tensor x = Counting({2, 2, 2});
  EXPECT_THAT(
      F(TestNode("ReduceMean").Attr("axes", IntList{0, -1}).Attr("keepdims", int64_t{0}).Input(x).Evaluate()),
      ElementsAre(3.5f, 5.5f));
  EXPECT_THAT(F(TestNode("ReduceMean", 18).Input(x).Const(Ints({1}, {1})).Evaluate()),
              ElementsAre(2, 3, 6, 7));
  EXPECT_THAT(F(TestNode("ReduceMean").Input(x).Evaluate()), ElementsAre(4.5f));
  const TestNode global = TestNode("ReduceMean")
                              .Attr("axes", IntList{2, 3})
                              .Attr("keepdims", int64_t{0})
                              .Input(Counting({1, 2, 1, 2}));
  EXPECT_NE(dynamic_cast<const GlobalPoolOp*>(global.Build().op.get()), nullptr);
  EXPECT_THAT(F(global.Evaluate()), ElementsAre(1.5f, 3.5f));
}

TEST(Nodes, OtherReductions) {
  const auto reduce = [](const char* type) {
    return F(TestNode(type)
                 .Attr("axes", IntList{1})
                 .Attr("keepdims", int64_t{0})
                 .Input(Floats({2, 2}, {3, -4, -5, -12}))
                 .Evaluate());
  };
  EXPECT_THAT(reduce("ReduceSum"), ElementsAre(-1, -17));
  EXPECT_THAT(reduce("ReduceMax"), ElementsAre(3, -5));
  EXPECT_THAT(reduce("ReduceMin"), ElementsAre(-4, -12));
  EXPECT_THAT(reduce("ReduceL2"), ElementsAre(5, 13));
  const TestNode global = TestNode("ReduceMax").Attr("axes", IntList{2, 3}).Input(Counting({1, 2, 1, 2}));
  EXPECT_NE(dynamic_cast<const GlobalPoolOp*>(global.Build().op.get()), nullptr);
  EXPECT_THAT(F(global.Evaluate()), ElementsAre(2, 4));
}

TEST(Nodes, SplitIsASliceForEachOutput) {
  const auto part = [](TestNode node, int output, int outputs) {
    node.spec.output = output;
    node.spec.outputs = outputs;
    return node;
  };
  const TestNode listed =
      TestNode("Split").Attr("axis", int64_t{-1}).Input(Counting({2, 3})).Const(Ints({2}, {1, 2}));
  EXPECT_THAT(F(part(listed, 0, 2).Evaluate()), ElementsAre(1, 4));
  EXPECT_THAT(F(part(listed, 1, 2).Evaluate()), ElementsAre(2, 3, 5, 6));
  const TestNode even = TestNode("Split").Input(Counting({5}));
  EXPECT_THAT(F(part(even, 0, 2).Evaluate()), ElementsAre(1, 2, 3));
  EXPECT_THAT(F(part(even, 1, 2).Evaluate()), ElementsAre(4, 5));
  EXPECT_THAT(
      F(part(TestNode("Split", 11).Attr("split", IntList{4, 1}).Input(Counting({5})), 1, 2).Evaluate()),
      ElementsAre(5));
  EXPECT_THAT(part(listed, 0, 3).Refusal(), HasSubstr("splits 3 elements into 3 outputs of 1, 2"));
  EXPECT_THAT(part(TestNode("Split").Input(Counting({5})).Const(Ints({2}, {4, 2})), 0, 2).Refusal(),
              HasSubstr("splits 5 elements"));
  EXPECT_THAT(
      part(TestNode("Split", 18).Attr("num_outputs", int64_t{2}).Input(Counting({5})), 0, 3).Refusal(),
      HasSubstr("num_outputs is 2"));
}

TEST(Nodes, Functions) {
  const Tensor x = Floats({4}, {1, 4, 0.25f, 2});
  const auto of = [&](const char* type) { return F(TestNode(type).Input(x).Evaluate()); };
  EXPECT_THAT(of("Sqrt"), ElementsAre(1, 2, 0.5f, std::sqrt(2.0f)));
  EXPECT_THAT(of("Reciprocal"), ElementsAre(1, 0.25f, 4, 0.5f));
  EXPECT_THAT(of("Neg"), ElementsAre(-1, -4, -0.25f, -2));
  EXPECT_THAT(of("Exp"), ElementsAre(testing::FloatEq(std::exp(1.0f)), testing::FloatEq(std::exp(4.0f)),
                                     testing::FloatEq(std::exp(0.25f)), testing::FloatEq(std::exp(2.0f))));
  const auto pow = [&](Tensor exponent) { return TestNode("Pow").Input(x).Const(std::move(exponent)); };
  EXPECT_THAT(F(pow(Floats({}, {3})).Evaluate()), ElementsAre(1, 64, 0.015625f, 8));
  EXPECT_THAT(F(pow(Floats({}, {2})).Evaluate()), ElementsAre(1, 16, 0.0625f, 4));
  EXPECT_EQ(pow(Floats({}, {2})).Build().op->Type(), "Mul");
  EXPECT_EQ(pow(Ints({}, {2})).Build().op->Type(), "Mul");
  EXPECT_EQ(pow(Floats({}, {0.5f})).Build().op->Type(), "Sqrt");
  EXPECT_EQ(pow(Floats({}, {1})).Build().op->Type(), "Identity");
  EXPECT_THAT(F(pow(Floats({4}, {0, 1, 2, 3})).Evaluate()), ElementsAre(1, 4, 0.0625f, 8));
  const auto limit = [&](const char* type, Tensor bound) {
    return TestNode(type).Input(x).Const(std::move(bound));
  };
  EXPECT_THAT(F(limit("Max", Floats({}, {1.5f})).Evaluate()), ElementsAre(1.5f, 4, 1.5f, 2));
  EXPECT_THAT(F(limit("Min", Floats({}, {1.5f})).Evaluate()), ElementsAre(1, 1.5f, 0.25f, 1.5f));
  EXPECT_EQ(limit("Max", Floats({}, {0})).Build().op->Type(), "Relu");
  EXPECT_EQ(limit("Min", Floats({}, {6})).Build().op->Type(), "Clip");
  EXPECT_THAT(F(limit("Max", Floats({4}, {2, 2, 2, 2})).Evaluate()), ElementsAre(2, 4, 2, 2));
  EXPECT_THAT(F(TestNode("Min").Input(x).Input(Floats({1}, {2})).Input(Floats({1}, {1.5f})).Evaluate()),
              ElementsAre(1, 1.5f, 0.25f, 1.5f));
}

// The window of an even size reaches further behind the channel than before it.
TEST(Nodes, Lrn) {
  const auto lrn = [](int64_t size) {
    return TestNode("LRN")
        .Attr("size", size)
        .Attr("alpha", 2.0f)
        .Attr("beta", 1.0f)
        .Attr("bias", 1.0f)
        .Input(Counting({1, 3, 1}));
  };
  EXPECT_THAT(F(lrn(1).Evaluate()), ElementsAre(1.0f / 3, 2.0f / 9, 3.0f / 19));
  EXPECT_THAT(F(lrn(2).Evaluate()), ElementsAre(1.0f / 6, 2.0f / 14, 3.0f / 10));
  EXPECT_THAT(lrn(0).Refusal(), HasSubstr("size must be at least 1"));
}

TEST(Nodes, Indexing) {
  const Tensor x = Ints({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(I(TestNode("Gather").Attr("axis", int64_t{1}).Input(x).Const(Ints({2}, {-1, 0})).Evaluate()),
              ElementsAre(3, 1, 6, 4));
  EXPECT_EQ(TestNode("Gather").Input(x).Const(Ints({}, {1})).Evaluate().shape(), (Shape{3}));
  EXPECT_THAT(TestNode("Gather").Input(x).Const(Ints({}, {2})).Refusal(), HasSubstr("outside axis 0"));
  const auto slice = [&](IntList starts, IntList ends, IntList steps) {
    const Shape one{1};
    return I(TestNode("Slice")
                 .Input(x)
                 .Const(Ints(one, starts))
                 .Const(Ints(one, ends))
                 .Const(Ints(one, {1}))
                 .Const(Ints(one, steps))
                 .Evaluate());
  };
  EXPECT_THAT(slice({1}, {1 << 30}, {1}), ElementsAre(2, 3, 5, 6));
  EXPECT_THAT(slice({-1}, {INT64_MIN}, {-2}), ElementsAre(3, 1, 6, 4));
  EXPECT_THAT(slice({2}, {1}, {1}), ElementsAre());
  EXPECT_THAT(slice({0}, {-1}, {1}), ElementsAre(1, 2, 4, 5));
  const TestNode old = TestNode("Slice", 9)
                           .Attr("starts", IntList{1})
                           .Attr("ends", IntList{2})
                           .Attr("axes", IntList{0})
                           .Input(x);
  EXPECT_THAT(I(old.Evaluate()), ElementsAre(4, 5, 6));
  EXPECT_THAT(F(TestNode("Expand").Input(Counting({2, 1})).Const(Ints({1}, {2})).Evaluate()),
              ElementsAre(1, 1, 2, 2));
}

TEST(Nodes, ShapeArithmetic) {
  EXPECT_THAT(I(TestNode("Shape").Input(Counting({2, 3, 4})).Evaluate()), ElementsAre(2, 3, 4));
  EXPECT_THAT(I(TestNode("Shape", 15).Attr("start", int64_t{-2}).Input(Counting({2, 3, 4})).Evaluate()),
              ElementsAre(3, 4));
  EXPECT_THAT(I(TestNode("Size").Input(Counting({2, 3})).Evaluate()), ElementsAre(6));
  EXPECT_THAT(F(TestNode("Constant").Attr("value", Counting({2})).Evaluate()), ElementsAre(1, 2));
  EXPECT_THAT(I(TestNode("Constant").Attr("value_ints", IntList{4, 5}).Evaluate()), ElementsAre(4, 5));
  EXPECT_THAT(TestNode("Constant").Refusal(), HasSubstr("no value"));
  EXPECT_THAT(
      I(TestNode("ConstantOfShape").Attr("value", Ints({1}, {7})).Const(Ints({2}, {1, 2})).Evaluate()),
      ElementsAre(7, 7));
  EXPECT_THAT(F(TestNode("ConstantOfShape").Const(Ints({1}, {2})).Evaluate()), ElementsAre(0, 0));
  EXPECT_THAT(TestNode("ConstantOfShape").Const(Ints({1}, {-2})).Refusal(), HasSubstr("impossible"));
  EXPECT_THAT(I(TestNode("Range").Const(Ints({}, {5})).Const(Ints({}, {0})).Const(Ints({}, {-2})).Evaluate()),
              ElementsAre(5, 3, 1));
  EXPECT_THAT(I(TestNode("Cast").Attr("to", int64_t{7}).Input(Floats({2}, {1.7f, -1.7f})).Evaluate()),
              ElementsAre(1, -1));
  EXPECT_THAT(I(TestNode("Cast").Attr("to", int64_t{9}).Input(Floats({2}, {0.5f, 0})).Evaluate()),
              ElementsAre(1, 0));
  EXPECT_THAT(F(TestNode("Cast").Attr("to", int64_t{1}).Input(Ints({1}, {3})).Evaluate()), ElementsAre(3));
  EXPECT_THAT(TestNode("Cast").Attr("to", int64_t{8}).Input(Ints({1}, {3})).Refusal(),
              HasSubstr("to is STRING"));
  EXPECT_THAT(I(TestNode("Equal").Input(Ints({2}, {3, 4})).Input(Ints({}, {4})).Evaluate()),
              ElementsAre(0, 1));
  EXPECT_THAT(I(TestNode("Where")
                    .Input(Bools({2}, {true, false}))
                    .Input(Ints({}, {8}))
                    .Input(Ints({2}, {5, 6}))
                    .Evaluate()),
              ElementsAre(8, 6));
}

// Every type to every type, by way of what the types are.
TEST(Nodes, CastsAllTypes) {
  for (int from_number = 0; from_number < kDataTypes; ++from_number) {
    for (int to_number = 0; to_number < kDataTypes; ++to_number) {
      const auto from = static_cast<DataType>(from_number), to = static_cast<DataType>(to_number);
      SCOPED_TRACE(testing::Message() << DataTypeName(from) << " to " << DataTypeName(to));
      Tensor x({3}, Layout::Nchw(from));
      VisitType(from, [&](auto tag) {
        using T = typename decltype(tag)::Type;
        const T values[] = {ConvertElement<T>(0), ConvertElement<T>(1), ConvertElement<T>(100)};
        std::copy(std::begin(values), std::end(values), x.data<T>());
      });
      const BuiltOp built = TestNode("Cast").Attr("to", int64_t{OnnxTypeNumber(to)}).Input(x).Build();
      const Tensor* const inputs[] = {&x};
      const Tensor y = built.op->Reference(inputs);
      ASSERT_EQ(y.type(), ComputedType(to));
      const int64_t hundred = from == DataType::kBool || to == DataType::kBool ? 1 : 100;
      EXPECT_THAT(I(y), ElementsAre(0, 1, hundred));
    }
  }
  const auto cast = [](const Tensor& x, DataType to) {
    return TestNode("Cast").Attr("to", int64_t{OnnxTypeNumber(to)}).Input(x).Evaluate();
  };
  EXPECT_THAT(I(cast(Floats({4}, {-1.9f, 300, NAN, -1e9f}), DataType::kI8)), ElementsAre(-1, 127, 0, -128));
  EXPECT_THAT(I(cast(Ints({2}, {-1, 257}), DataType::kU8)), ElementsAre(255, 1));
  EXPECT_THAT(F(cast(Floats({2}, {65520, 1e-9f}), DataType::kF16)), ElementsAre(65520, 1e-9f))
      << "numbers of 16 bits are computed in f32";
  EXPECT_THAT(I(cast(Floats({2}, {-0.0f, 1e-30f}), DataType::kBool)), ElementsAre(0, 1));
  EXPECT_EQ(TestNode("Cast").Attr("to", int64_t{11}).Input(Ints({1}, {3})).Evaluate().type(), DataType::kF32)
      << "doubles are floats here";
}

TEST(Nodes, TypesFollowOnnx) {
  const Tensor equal = TestNode("Equal").Input(Ints({2}, {3, 4})).Input(Ints({}, {4})).Evaluate();
  EXPECT_EQ(equal.type(), DataType::kBool);
  EXPECT_EQ(TestNode("Equal").Input(Bools({1}, {true})).Input(Bools({1}, {true})).Evaluate().data<bool>()[0],
            true);
  EXPECT_THAT(TestNode("Where").Input(Ints({1}, {1})).Input(Ints({1}, {1})).Input(Ints({1}, {1})).Refusal(),
              HasSubstr("must be boolean"));
  Tensor small({2}, Layout::Nchw(DataType::kI32));
  small.data<int32_t>()[0] = -1;
  EXPECT_THAT(I(TestNode("Gather").Input(Ints({3}, {7, 8, 9})).Input(small).Evaluate()), ElementsAre(9, 7));
  EXPECT_THROW(GatherOp(0).OutputType(std::vector{DataType::kF32, DataType::kBool}), Error);
  Tensor bytes({2}, Layout::Nchw(DataType::kU8));
  bytes.data<uint8_t>()[0] = 200;
  bytes.data<uint8_t>()[1] = 3;
  EXPECT_THAT(I(TestNode("Add").Input(bytes).Input(bytes).Evaluate()), ElementsAre(144, 6));
  EXPECT_THAT(I(TestNode("Sub").Input(small).Input(small).Evaluate()), ElementsAre(0, 0));
  EXPECT_THAT(TestNode("Div").Input(bytes).Input(bytes).Evaluate().type(), DataType::kU8);
  EXPECT_THROW(BinaryOp(BinaryKind::kAdd).OutputType(std::vector(2, DataType::kBool)), Error);
  Tensor halves({2}, Layout::Nchw(DataType::kF16));
  halves.data<F16>()[0] = F16(2049 - 1);
  halves.data<F16>()[1] = F16(0.5f);
  const Tensor sum = TestNode("Add").Input(halves).Input(halves).Evaluate();
  EXPECT_EQ(float{sum.data<F16>()[0]}, 4096);
  EXPECT_EQ(float{sum.data<F16>()[1]}, 1);
  Tensor bound({}, Layout::Nchw(DataType::kU8));
  bound.data<uint8_t>()[0] = 3;
  Tensor zero({}, Layout::Nchw(DataType::kU8)), one = zero;
  one.data<uint8_t>()[0] = 1;
  const Tensor range = TestNode("Range").Const(zero).Const(bound).Const(one).Evaluate();
  EXPECT_EQ(range.type(), DataType::kU8);
  EXPECT_THAT(I(range), ElementsAre(0, 1, 2));
  EXPECT_THAT(TestNode("Range").Const(zero).Const(bound).Const(Ints({}, {1})).Refusal(), HasSubstr("types"));
}

}  // namespace
}  // namespace tilesmith
