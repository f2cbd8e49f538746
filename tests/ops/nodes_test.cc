// Importers and references: small cases checked by hand, and the refusals.
#include <gmock/gmock.h>

#include "ops/conv/conv.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/pool/pool.h"
#include "tests/ops/test_node.h"
#include "tests/support/random.h"

namespace tilesmith {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;

TEST(Registry, IsSortedWithoutDuplicates) {
  const auto& importers = OpImporters();
  for (size_t i = 1; i < importers.size(); ++i) EXPECT_LT(importers[i - 1].op_type, importers[i].op_type);
  for (const OpImporter& importer : importers) EXPECT_EQ(FindOpImporter(importer.op_type), &importer);
  EXPECT_EQ(FindOpImporter("StringNormalizer"), nullptr);
}

TEST(Registry, AttributesAreTyped) {
  const TestNode node = TestNode("Concat").Attr("axis", 1.5f).Input(Counting({1, 2}));
  EXPECT_THAT(node.Refusal(), testing::AllOf(HasSubstr("node7"), HasSubstr("axis"), HasSubstr("an integer"),
                                             HasSubstr("a float")));
}

TEST(ConvNode, ByHand) {
  TestNode node("Conv");
  node.Input(Counting({1, 1, 3, 3})).Const(Floats({1, 1, 2, 2}, {1, 0, 0, 10})).Const(Floats({1}, {100}));
  EXPECT_THAT(F(node.Evaluate()), ElementsAre(151, 162, 184, 195));
  node.Attr("pads", IntList{1, 0, 0, 1}).Attr("strides", IntList{2, 1});
  EXPECT_THAT(F(node.Evaluate()), ElementsAre(120, 130, 100, 184, 195, 106));
}

TEST(ConvNode, AutoPadAndGroups) {
  TestNode upper("Conv");
  upper.Attr("auto_pad", std::string("SAME_UPPER")).Input(Counting({1, 1, 1, 4}));
  upper.Const(Floats({1, 1, 1, 2}, {1, 10}));
  EXPECT_THAT(F(upper.Evaluate()), ElementsAre(21, 32, 43, 4));
  upper.spec.attributes.insert_or_assign("auto_pad", std::string("SAME_LOWER"));
  EXPECT_THAT(F(upper.Evaluate()), ElementsAre(10, 21, 32, 43));
  TestNode grouped("Conv");
  grouped.Attr("group", int64_t{2}).Attr("dilations", IntList{1, 2});
  grouped.Input(Counting({1, 2, 1, 3})).Const(Floats({2, 1, 1, 2}, {1, 1, 2, 0}));
  EXPECT_THAT(F(grouped.Evaluate()), ElementsAre(4, 8));
}

TEST(ConvNode, Refusals) {
  const Tensor weights = Counting({2, 3, 2, 2});
  const auto conv = [&](const Shape& input) {
    return TestNode("Conv").Input(Counting(input)).Const(weights);
  };
  EXPECT_THAT(TestNode("Conv").Input(Counting({1, 3})).Const(Counting({2, 3})).Refusal(),
              HasSubstr("one, two and three dimensions"));
  EXPECT_THAT(TestNode("Conv").Input(Counting({1, 3, 5, 5})).Input(weights).Refusal(), HasSubstr("constant"));
  EXPECT_THAT(conv({1, 4, 5, 5}).Refusal(), HasSubstr("4 input channels"));
  EXPECT_THAT(conv({1, 3, 1, 1}).Refusal(), HasSubstr("extends over 2 of 1"));
  EXPECT_THAT(conv({1, 3, 5, 5}).Attr("pads", IntList{0, 0, -1, 0}).Refusal(), HasSubstr("negative"));
  EXPECT_THAT(conv({1, 3, 5, 5}).Attr("strides", IntList{0, 1}).Refusal(), HasSubstr("positive"));
  EXPECT_THAT(conv({1, 3, 5, 5}).Attr("auto_pad", std::string("SAME")).Refusal(), HasSubstr("SAME_UPPER"));
  EXPECT_THAT(conv({1, 3, 5, 5}).Const(Counting({3})).Refusal(), HasSubstr("bias has 3 values"));
}

// The im2col reference against the one-element formula, over shapes with every attribute.
TEST(ConvReference, AgreesWithTheFormula) {
  int seed = 0;
  for (const char* text : {"ic3ih9oc5kh3ph1+bias+sum+relu", "g2mb2ic4ih7iw15oc6kh3kw5sh2ph1pw2dh1+bias",
                           "g5ic5ih6oc5kh3ph1+clip:-1:1", "ic2ih17oc130kh1", "ic1ih4oc1oh4kh4ph3sh1+sum"}) {
    const ConvWorkload w = ParseWorkload(text);
    Tensor input(w.input_shape()), weights(w.weights_shape()), bias(Shape{w.oc}), residual(w.output_shape());
    for (Tensor* tensor : {&input, &weights, &bias, &residual}) {
      FillUniform({tensor->floats(), static_cast<size_t>(tensor->size())}, ++seed);
    }
    const Tensor* b = w.post.bias ? &bias : nullptr;
    const Tensor* r = w.post.sum ? &residual : nullptr;
    const Tensor out = ReferenceConv(w, input, weights, b, r);
    for (int64_t i = 0; i < out.size(); ++i) {
      const Dims4 at{i / (w.oc * w.oh * w.ow), i / (w.oh * w.ow) % w.oc, i / w.ow % w.oh, i % w.ow};
      const ConvSample sample = ReferenceConvAt(w, input, weights, b, r, at);
      ASSERT_NEAR(out.floats()[i], sample.value, 0x1p-23 * sample.magnitude) << text << " element " << i;
    }
  }
}

// Fused in front, against the same computed one after the other, and each element against the whole.
TEST(ConvReference, ComputesWhatIsFusedInFront) {
  int seed = 100;
  for (const char* text :
       {"g6ic6ih9oc6kh3sh2ph1+bias+relu>ic6ih5oc4kh1+bias+sum", "ic3ih6oc8kh1>g8ic8ih6oc8kh3ph1+relu",
        "scale_shift+relu>mb2ic5ih6oc4kh3ph1+bias", "scale_shift>g2ic4ih5oc4kh1", "relu>ic4ih5oc4kh3ph2"}) {
    const ConvWorkload w = ParseWorkload(text);
    const ConvData data = MakeConvData(w, [&seed](Tensor& tensor) {
      FillUniform({tensor.floats(), static_cast<size_t>(tensor.size())}, ++seed);
    });
    const ConvTensors tensors = data.tensors();
    Tensor between;
    if (w.before.empty()) {
      const auto values = [&](const Tensor* t, float otherwise) {
        return t ? std::vector(t->floats(), t->floats() + t->size())
                 : std::vector(static_cast<size_t>(w.ic), otherwise);
      };
      const ScaleShiftOp op(values(tensors.scale, 1), values(tensors.shift, 0), w.pre.activation);
      between = op.Reference(std::vector{&data.input});
    } else {
      between = ReferenceConv(w.before[0], data.input, *tensors.before_weights, tensors.before_bias, nullptr);
    }
    const Tensor expected =
        ReferenceConv(w.main_conv(), between, data.weights, tensors.bias, tensors.residual);
    const Tensor out = ReferenceConv(w, tensors);
    for (int64_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(out.floats()[i], expected.floats()[i]) << text << " element " << i;
      const Dims4 at{i / (w.oc * w.oh * w.ow), i / (w.oh * w.ow) % w.oc, i / w.ow % w.oh, i % w.ow};
      const ConvSample sample = ReferenceConvAt(w, tensors, at);
      ASSERT_NEAR(out.floats()[i], sample.value, 0x1p-23 * sample.magnitude) << text << " element " << i;
      ASSERT_GE(sample.magnitude * 1.001, std::abs(sample.value));
    }
  }
}

TEST(Nodes, BatchNormalization) {
  TestNode node("BatchNormalization");
  node.Attr("epsilon", 0.0f).Input(Floats({1, 2, 1, 2}, {1, 2, 3, 4}));
  node.Const(Floats({2}, {1, 2}))
      .Const(Floats({2}, {0, 10}))
      .Const(Floats({2}, {1, 3}))
      .Const(Floats({2}, {1, 4}));
  EXPECT_THAT(F(node.Evaluate()), ElementsAre(0, 1, 10, 11));
}

TEST(Nodes, Activations) {
  const auto run = [](TestNode node) { return F(node.Input(Floats({4}, {-4, -1, 1, 9})).Evaluate()); };
  EXPECT_THAT(run(TestNode("Relu")), ElementsAre(0, 0, 1, 9));
  EXPECT_THAT(run(TestNode("LeakyRelu").Attr("alpha", 0.5f)), ElementsAre(-2, -0.5f, 1, 9));
  EXPECT_THAT(run(TestNode("HardSigmoid").Attr("alpha", 0.25f)), ElementsAre(0, 0.25f, 0.75f, 1));
  EXPECT_THAT(run(TestNode("HardSwish", 14)), ElementsAre(0, FloatEq(-1 / 3.0f), FloatEq(2 / 3.0f), 9));
  EXPECT_THAT(run(TestNode("Clip", 6).Attr("min", -2.0f).Attr("max", 6.0f)), ElementsAre(-2, -1, 1, 6));
  const TestNode clip = TestNode("Clip").Input(Floats({2}, {-9, 9})).Absent().Const(Floats({}, {3}));
  EXPECT_THAT(F(clip.Evaluate()), ElementsAre(-9, 3));
  EXPECT_EQ(TestNode("Clip").Input(Counting({1})).Const(Floats({}, {0})).Build().op->Type(), "Relu");
  EXPECT_EQ(TestNode("Clip").Input(Counting({1})).Build().op->Type(), "Identity");
  const TestNode prelu =
      TestNode("PRelu").Input(Floats({1, 2, 1, 2}, {-1, 1, -2, 2})).Const(Floats({2, 1, 1}, {2, 3}));
  EXPECT_THAT(F(prelu.Evaluate()), ElementsAre(-2, 1, -6, 2));
  EXPECT_EQ(F(TestNode("PRelu")
                  .Input(Floats({1, 2, 1, 3}, {-1, -1, -1, -2, -2, 5}))
                  .Const(Counting({3}))
                  .Evaluate()),
            (std::vector<float>{-1, -2, -3, -2, -4, 5}));
  EXPECT_THAT(TestNode("PRelu").Input(Counting({1, 2, 1, 3})).Const(Counting({4})).Refusal(),
              HasSubstr("do not broadcast"));
}

TEST(Nodes, BinaryBroadcasts) {
  const Tensor a = Counting({2, 1, 2}), b = Floats({3, 1}, {10, 20, 30});
  EXPECT_THAT(F(TestNode("Add").Input(a).Input(b).Evaluate()),
              ElementsAre(11, 12, 21, 22, 31, 32, 13, 14, 23, 24, 33, 34));
  EXPECT_THAT(I(TestNode("Div").Input(Ints({2}, {7, -7})).Input(Ints({1}, {2})).Evaluate()),
              ElementsAre(3, -3));
  EXPECT_THAT(TestNode("Div").Input(Ints({1}, {7})).Input(Ints({1}, {0})).Refusal(), HasSubstr("zero"));
  EXPECT_THAT(TestNode("Mul").Input(Counting({2})).Input(Counting({3})).Refusal(), HasSubstr("broadcast"));
  EXPECT_THAT(F(TestNode("Sum").Input(Counting({2})).Input(Counting({2})).Input(Counting({1})).Evaluate()),
              ElementsAre(3, 5));
  EXPECT_THAT(F(TestNode("Sum").Input(Counting({2})).Evaluate()), ElementsAre(1, 2));
}

TEST(Nodes, ConstantOperandsBecomeScaleShifts) {
  const Tensor x = Counting({1, 2, 1, 2}), c = Floats({2, 1, 1}, {2, 4});
  struct Expectation {
    const char* type;
    bool constant_first;
    std::vector<float> values;
    bool scale_shift = true;
  };
  for (const Expectation& e : std::vector<Expectation>{{"Add", false, {3, 4, 7, 8}},
                                                       {"Add", true, {3, 4, 7, 8}},
                                                       {"Sub", false, {-1, 0, -1, 0}},
                                                       {"Sub", true, {1, 0, 1, 0}},
                                                       {"Mul", false, {2, 4, 12, 16}},
                                                       {"Div", false, {0.5f, 1, 0.75f, 1}},
                                                       {"Div", true, {2, 1, 4 / 3.0f, 1}, false}}) {
    TestNode node(e.type);
    if (e.constant_first) {
      node.Const(c).Input(x);
    } else {
      node.Input(x).Const(c);
    }
    EXPECT_EQ(F(node.Evaluate()), e.values) << e.type;
    EXPECT_EQ(dynamic_cast<const ScaleShiftOp*>(node.Build().op.get()) != nullptr, e.scale_shift) << e.type;
  }
  EXPECT_EQ(TestNode("Add").Input(x).Const(Counting({2})).Build().op->Type(), "Add") << "along the width";
}

TEST(Nodes, MaxPool) {
  const Tensor image = Counting({1, 1, 4, 4});
  const auto pool = [&] { return TestNode("MaxPool").Attr("kernel_shape", IntList{3, 3}).Input(image); };
  EXPECT_THAT(F(pool().Evaluate()), ElementsAre(11, 12, 15, 16));
  EXPECT_THAT(F(pool().Attr("strides", IntList{2, 2}).Evaluate()), ElementsAre(11));
  EXPECT_THAT(F(pool().Attr("strides", IntList{2, 2}).Attr("ceil_mode", int64_t{1}).Evaluate()),
              ElementsAre(11, 12, 15, 16));
  EXPECT_THAT(F(pool().Attr("strides", IntList{3, 3}).Attr("auto_pad", std::string("SAME_UPPER")).Evaluate()),
              ElementsAre(6, 8, 14, 16));
  EXPECT_THAT(F(TestNode("MaxPool")
                    .Attr("kernel_shape", IntList{2, 2})
                    .Attr("dilations", IntList{3, 3})
                    .Input(image)
                    .Evaluate()),
              ElementsAre(16));
  // The third window of a ceil_mode pool would start in the padding: there are two.
  const Tensor row = Floats({1, 1, 1, 3}, {-1, -2, -3});
  const TestNode ceil = TestNode("MaxPool")
                            .Attr("kernel_shape", IntList{1, 2})
                            .Attr("strides", IntList{1, 2})
                            .Attr("pads", IntList{0, 1, 0, 1})
                            .Attr("ceil_mode", int64_t{1})
                            .Input(row);
  EXPECT_THAT(F(ceil.Evaluate()), ElementsAre(-1, -2));
  EXPECT_THAT(TestNode("MaxPool").Input(image).Refusal(), HasSubstr("kernel_shape"));
  EXPECT_THAT(TestNode("MaxPool").Attr("kernel_shape", IntList{9, 9}).Input(image).Refusal(),
              HasSubstr("does not fit"));
  EXPECT_THAT(TestNode("MaxPool").Attr("kernel_shape", IntList{2}).Input(Counting({1, 4})).Refusal(),
              HasSubstr("ranks 3 to 5"));
}

TEST(Nodes, AveragePool) {
  const auto pool = [] {
    return TestNode("AveragePool")
        .Attr("kernel_shape", IntList{1, 3})
        .Attr("pads", IntList{0, 1, 0, 1})
        .Input(Floats({1, 1, 1, 3}, {3, 6, 9}));
  };
  EXPECT_THAT(F(pool().Evaluate()), ElementsAre(4.5f, 6, 7.5f));
  EXPECT_THAT(F(pool().Attr("count_include_pad", int64_t{1}).Evaluate()), ElementsAre(3, 6, 5));
  // With ceil_mode the last window overhangs the padded input by one, which never counts.
  const TestNode ceil = TestNode("AveragePool")
                            .Attr("kernel_shape", IntList{1, 3})
                            .Attr("strides", IntList{1, 2})
                            .Attr("pads", IntList{0, 0, 0, 1})
                            .Attr("ceil_mode", int64_t{1})
                            .Attr("count_include_pad", int64_t{1})
                            .Input(Counting({1, 1, 1, 5}));
  EXPECT_THAT(F(ceil.Evaluate()), ElementsAre(2, 4, 2.5f));
  EXPECT_THAT(F(TestNode("GlobalAveragePool").Input(Counting({1, 2, 1, 2})).Evaluate()),
              ElementsAre(1.5f, 3.5f));
  EXPECT_THAT(F(TestNode("GlobalMaxPool").Input(Counting({1, 2, 1, 2})).Evaluate()), ElementsAre(2, 4));
}

TEST(Nodes, ConcatAlongAnyAxis) {
  const Tensor a = Counting({2, 1}), b = Floats({2, 2}, {7, 8, 9, 10});
  EXPECT_THAT(F(TestNode("Concat").Attr("axis", int64_t{-1}).Input(a).Input(b).Evaluate()),
              ElementsAre(1, 7, 8, 2, 9, 10));
  EXPECT_THAT(I(TestNode("Concat")
                    .Attr("axis", int64_t{0})
                    .Input(Ints({1}, {5}))
                    .Input(Ints({2}, {6, 7}))
                    .Evaluate()),
              ElementsAre(5, 6, 7));
  EXPECT_THAT(TestNode("Concat").Attr("axis", int64_t{0}).Input(a).Input(b).Refusal(),
              HasSubstr("2x1 and 2x2"));
  EXPECT_THAT(TestNode("Concat").Attr("axis", int64_t{2}).Input(a).Refusal(), HasSubstr("outside the rank"));
}

TEST(Nodes, GemmAndMatMul) {
  const Tensor a = Counting({1, 2});
  const TestNode gemm = TestNode("Gemm")
                            .Attr("alpha", 2.0f)
                            .Attr("beta", 10.0f)
                            .Attr("transB", int64_t{1})
                            .Input(a)
                            .Const(Floats({3, 2}, {1, 0, 0, 1, 1, 1}))
                            .Const(Floats({3}, {1, 2, 3}));
  EXPECT_THAT(F(gemm.Evaluate()), ElementsAre(12, 24, 36));
  EXPECT_THAT(F(TestNode("Gemm").Attr("transA", int64_t{1}).Input(a).Const(Counting({1, 2})).Evaluate()),
              ElementsAre(1, 2, 2, 4));
  EXPECT_THAT(F(TestNode("Gemm")
                    .Attr("transB", int64_t{1})
                    .Attr("alpha", 0.5f)
                    .Input(a)
                    .Input(Counting({1, 2}))
                    .Const(Floats({1}, {4}))
                    .Evaluate()),
              ElementsAre(6.5));
  EXPECT_THAT(TestNode("Gemm").Input(a).Const(Counting({3, 2})).Refusal(), HasSubstr("inner sizes"));
  EXPECT_THAT(F(TestNode("MatMul").Input(a).Const(Counting({2, 2})).Evaluate()), ElementsAre(7, 10));
  EXPECT_THAT(F(TestNode("MatMul").Input(Counting({2, 1, 2})).Input(Counting({2, 1})).Evaluate()),
              ElementsAre(5, 11));
  EXPECT_THAT(F(TestNode("MatMul").Input(Counting({2})).Const(Counting({2, 2})).Evaluate()),
              ElementsAre(7, 10));
  EXPECT_THAT(F(TestNode("MatMul").Input(Counting({2})).Input(Counting({2})).Evaluate()), ElementsAre(5));
  EXPECT_THAT(F(TestNode("MatMul").Const(Counting({1, 2})).Input(Counting({2, 1})).Evaluate()),
              ElementsAre(5));
}

TEST(Nodes, Attention) {
  const Tensor q({1, 3, 4}), v = Counting({1, 2, 2});  // two heads of queries share one of keys and values
  const auto node = [&] {
    return TestNode("Attention", 23).Attr("q_num_heads", int64_t{2}).Attr("kv_num_heads", int64_t{1});
  };
  EXPECT_THAT(F(node().Input(q).Input(Tensor({1, 2, 2})).Input(v).Evaluate()),
              ElementsAre(2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3));
  EXPECT_THAT(F(node().Attr("is_causal", int64_t{1}).Input(q).Input(Tensor({1, 2, 2})).Input(v).Evaluate()),
              ElementsAre(1, 2, 1, 2, 2, 3, 2, 3, 2, 3, 2, 3));
  EXPECT_THAT(F(node()
                    .Input(q)
                    .Input(Tensor({1, 2, 2}))
                    .Input(v)
                    .Input(Floats({3, 2}, {0, -1000, 0, -1000, -1000, 0}))
                    .Evaluate()),
              ElementsAre(1, 2, 1, 2, 1, 2, 1, 2, 3, 4, 3, 4));
  EXPECT_THAT(TestNode("Attention", 23).Input(q).Input(q).Input(q).Refusal(), HasSubstr("q_num_heads is 0"));
  EXPECT_THAT(node().Attr("softcap", 1.0f).Input(q).Input(v).Input(v).Refusal(), HasSubstr("softcap"));
  EXPECT_THAT(node().Input(q).Input(v).Input(v).Input(Tensor({5, 2})).Refusal(), HasSubstr("mask"));
}

TEST(Nodes, SoftmaxOfEitherOpset) {
  const Tensor zeros({1, 2, 2});
  EXPECT_THAT(F(TestNode("Softmax").Input(zeros).Evaluate()), testing::Each(0.5f));
  EXPECT_THAT(F(TestNode("Softmax", 11).Input(zeros).Evaluate()), testing::Each(0.25f));
  EXPECT_THAT(
      F(TestNode("Softmax").Attr("axis", int64_t{1}).Input(Floats({1, 2, 2}, {0, 0, 0, 800})).Evaluate()),
      ElementsAre(0.5f, 0, 0.5f, 1));
}

}  // namespace
}  // namespace tilesmith
