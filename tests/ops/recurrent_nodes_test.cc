// LSTM, GRU and RNN of models: the reference against formulas, outputs, lengths, refusals.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>

#include "tests/ops/test_node.h"
#include "tests/support/ops/written_model.h"

namespace tilesmith {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One unit, one row, two steps: numbers that are multiplied one by one.
TEST(RecurrentNodes, LstmOfOneUnit) {
  const std::vector<float> w = {0.5f, -0.25f, 0.75f, 1.0f}, r = {-0.5f, 0.25f, 0.125f, -1.0f};
  const std::vector<float> b = {0.1f, 0.2f, 0.3f, 0.4f, 0.01f, 0.02f, 0.03f, 0.04f};
  const std::vector<float> p = {0.6f, -0.7f, 0.8f}, x = {0.9f, -1.1f};
  double h = 0.3, c = -0.4;
  std::vector<float> want;
  for (const double in : x) {
    const auto gate = [&](int g) { return in * w[g] + h * r[g] + b[g] + b[4 + g]; };
    const double i = Sigmoid(gate(0) + p[0] * c), f = Sigmoid(gate(2) + p[2] * c), z = std::tanh(gate(3));
    const double next = f * c + i * z;
    const double o = Sigmoid(gate(1) + p[1] * next);
    c = next, h = o * std::tanh(c);
    want.push_back(static_cast<float>(h));
  }
  const TestNode node = TestNode("LSTM", 14)
                            .Input(Floats({2, 1, 1}, x))
                            .Const(Floats({1, 4, 1}, w))
                            .Const(Floats({1, 4, 1}, r))
                            .Const(Floats({1, 8}, b))
                            .Const(Ints32({2}))
                            .Input(Floats({1, 1, 1}, {0.3f}))
                            .Input(Floats({1, 1, 1}, {-0.4f}))
                            .Const(Floats({1, 3}, p));
  EXPECT_THAT(F(node.Evaluate()), Pointwise(FloatNear(1e-6f), want));
}

// What the gates' functions are applied to is clipped; the cell state, to which h is applied, is not.
TEST(RecurrentNodes, ClipIsOfGates) {
  const double clip = 0.5, i = Sigmoid(clip), c = i * 2.0 + i * std::tanh(clip);
  TestNode node("LSTM", 14);
  node.Attr("clip", 0.5f).Input(Floats({1, 1, 1}, {3})).Const(Floats({1, 4, 1}, {1, 1, 1, 1}));
  node.Const(Floats({1, 4, 1}, {0, 0, 0, 0})).Absent().Absent().Absent().Const(Floats({1, 1, 1}, {2}));
  EXPECT_THAT(F(node.Evaluate()), Pointwise(FloatNear(1e-6f), {static_cast<float>(i * std::tanh(c))}));
}

TEST(RecurrentNodes, GruOfOneUnit) {
  const std::vector<float> w = {0.5f, -0.25f, 0.75f}, r = {-0.5f, 0.25f, 0.9f};
  const std::vector<float> b = {0.1f, 0.2f, 0.3f, 0.01f, 0.02f, 0.5f}, x = {0.9f, -1.1f, 0.4f};
  for (const int64_t behind : {0, 1}) {
    double h = 0;
    std::vector<float> want;
    for (const double in : x) {
      const double z = Sigmoid(in * w[0] + h * r[0] + b[0] + b[3]),
                   reset = Sigmoid(in * w[1] + h * r[1] + b[1] + b[4]);
      const double product = behind != 0 ? reset * (h * r[2] + b[5]) : reset * h * r[2] + b[5];
      h = (1 - z) * std::tanh(in * w[2] + b[2] + product) + z * h;
      want.push_back(static_cast<float>(h));
    }
    for (const bool constant : {false, true}) {
      TestNode node("GRU", 7);
      node.Attr("linear_before_reset", behind).Attr("hidden_size", int64_t{1}).Input(Floats({3, 1, 1}, x));
      for (const Tensor& tensor : {Floats({1, 3, 1}, w), Floats({1, 3, 1}, r), Floats({1, 6}, b)})
        constant ? node.Const(tensor) : node.Input(tensor);
      EXPECT_THAT(F(node.Evaluate()), Pointwise(FloatNear(1e-6f), want)) << behind;
    }
  }
}

TEST(RecurrentNodes, FunctionsOfGates) {
  struct Case {
    const char* name;
    std::vector<float> alphas, betas;
    double want;  // of -0.8
  };
  const Case cases[] = {{"Relu", {}, {}, 0},
                        {"tanh", {}, {}, std::tanh(-0.8)},
                        {"Sigmoid", {}, {}, Sigmoid(-0.8)},
                        {"Affine", {2}, {0.5}, -1.1},
                        {"LeakyRelu", {}, {}, -0.008},
                        {"LeakyRelu", {0.5}, {}, -0.4},
                        {"ThresholdedRelu", {-1}, {}, -0.8},
                        {"ThresholdedRelu", {}, {}, 0},
                        {"ScaledTanh", {2}, {0.5}, 2 * std::tanh(-0.4)},
                        {"HardSigmoid", {}, {}, 0.34},
                        {"Elu", {2}, {}, 2 * std::expm1(-0.8)},
                        {"Softsign", {}, {}, -0.8 / 1.8},
                        {"Softplus", {}, {}, std::log1p(std::exp(-0.8))}};
  for (const Case& c : cases) {
    // Both ways, the functions' parameters one behind the other: the other function has none.
    TestNode node("RNN", 22);
    node.Attr("direction", std::string("bidirectional"))
        .Attr("activations", std::vector<std::string>{"Tanh", c.name})
        .Attr("activation_alpha", c.alphas)
        .Attr("activation_beta", c.betas)
        .Input(Floats({1, 1, 1}, {-0.8f}))
        .Const(Floats({2, 1, 1}, {1, 1}))
        .Const(Floats({2, 1, 1}, {0, 0}));
    EXPECT_THAT(F(node.Evaluate()), Pointwise(FloatNear(1e-6f), {static_cast<float>(std::tanh(-0.8)),
                                                                 static_cast<float>(c.want)}))
        << c.name;
  }
}

struct ModelOfBoth {
  OnnxModel model{22};
  std::vector<Tensor> inputs;
};

// Both directions, batch first, lengths that are an input.
ModelOfBoth LstmModel(const std::vector<std::string>& outputs, int64_t layout) {
  ModelOfBoth made;
  TestRandom random(11);
  made.inputs = {Uniform(layout == 1 ? Shape{3, 5, 4} : Shape{5, 3, 4}, random), Ints32({5, 2, 0})};
  made.model.Input("x", layout == 1 ? std::vector<OnnxDim>{3, 5, 4} : std::vector<OnnxDim>{5, 3, 4});
  made.model.Input("n", {3}, onnx::TensorProto::INT32);
  made.model.Floats("w", {2, 24, 4}, F(Uniform({2, 24, 4}, random)));
  made.model.Floats("r", {2, 24, 6}, F(Uniform({2, 24, 6}, random)));
  made.model.Floats("b", {2, 48}, F(Uniform({2, 48}, random)));
  onnx::NodeProto& node = made.model.Node("LSTM", {"x", "w", "r", "b", "n"}, {"y", "h", "c"}, "rnn");
  for (const auto& [name, value] : {std::pair{"hidden_size", int64_t{6}}, {"layout", layout}}) {
    onnx::AttributeProto* attribute = node.add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(value);
  }
  onnx::AttributeProto* direction = node.add_attribute();
  direction->set_name("direction");
  direction->set_type(onnx::AttributeProto::STRING);
  direction->set_s("bidirectional");
  for (const std::string& output : outputs) made.model.Output(output);
  return made;
}

TEST(RecurrentNodes, OutputsAloneAndTogether) {
  for (const int64_t layout : {0, 1}) {
    const ModelOfBoth all = LstmModel({"y", "h", "c"}, layout);
    const std::vector<Tensor> want = Outputs(all.model, all.inputs);
    const Shape states = layout == 1 ? Shape{3, 2, 6} : Shape{2, 3, 6};
    ASSERT_EQ(want[0].shape(), layout == 1 ? (Shape{3, 5, 2, 6}) : (Shape{5, 2, 3, 6}));
    ASSERT_EQ(want[1].shape(), states);
    ASSERT_EQ(want[2].shape(), states);
    const std::vector<std::string> names = {"y", "h", "c"};
    for (int mask = 1; mask < 7; ++mask) {
      std::vector<std::string> some;
      for (int i = 0; i < 3; ++i)
        if (mask >> i & 1) some.push_back(names[i]);
      const ModelOfBoth part = LstmModel(some, layout);
      const std::vector<Tensor> got = Outputs(part.model, part.inputs);
      size_t next = 0;
      for (int i = 0; i < 3; ++i) {
        if (mask >> i & 1) {
          ASSERT_EQ(F(got[next++]), F(want[i])) << mask;
        }
      }
    }
  }
}

// What ONNX says of lengths: zeros behind the end, the last valid step's states, and only what is valid
// backwards.
TEST(RecurrentNodes, LengthsEndSequences) {
  const ModelOfBoth made = LstmModel({"y", "h"}, 0);
  const std::vector<Tensor> got = Outputs(made.model, made.inputs);
  const auto y = [&](int64_t step, int64_t direction, int64_t row, int64_t unit) {
    return got[0].floats()[((step * 2 + direction) * 3 + row) * 6 + unit];
  };
  const auto h = [&](int64_t direction, int64_t row, int64_t unit) {
    return got[1].floats()[(direction * 3 + row) * 6 + unit];
  };
  for (int64_t unit = 0; unit < 6; ++unit) {
    EXPECT_EQ(h(0, 0, unit), y(4, 0, 0, unit));
    EXPECT_EQ(h(0, 1, unit), y(1, 0, 1, unit));
    EXPECT_EQ(h(1, 1, unit), y(0, 1, 1, unit));
    EXPECT_EQ(h(0, 2, unit), 0);
    EXPECT_NE(y(1, 1, 1, unit), 0);
    for (const int64_t direction : {0, 1}) {
      EXPECT_EQ(y(2, direction, 1, unit), 0);
      EXPECT_EQ(y(0, direction, 2, unit), 0);
    }
  }
  // The short sequence alone, of its own steps only.
  ModelOfBoth alone = LstmModel({"y", "h"}, 0);
  alone.inputs[1] = Ints32({2, 2, 2});
  const std::vector<Tensor> of_two = Outputs(alone.model, alone.inputs);
  for (int64_t unit = 0; unit < 6; ++unit) {
    EXPECT_EQ(of_two[0].floats()[(1 * 3 + 1) * 6 + unit], y(0, 1, 1, unit));
  }
}

// Bytes and the scales of their columns or of all are the numbers that they stand for.
TEST(RecurrentNodes, DynamicQuantizeLstm) {
  TestRandom random(2);
  const Tensor x = Uniform({3, 2, 2}, random), b = Uniform({1, 24}, random);
  std::vector<int8_t> w(2 * 12), r(3 * 12);
  for (int8_t& value : w) value = static_cast<int8_t>(random.Integer(-128, 127));
  for (int8_t& value : r) value = static_cast<int8_t>(random.Integer(-128, 127));
  const Tensor scales = Uniform({1, 12}, random, 0.01f);
  Tensor real_w({1, 12, 2}), real_r({1, 12, 3});
  for (int64_t row = 0; row < 12; ++row) {
    for (int64_t k = 0; k < 2; ++k)
      real_w.floats()[row * 2 + k] = (w[k * 12 + row] - 3) * scales.floats()[row];
    for (int64_t k = 0; k < 3; ++k) real_r.floats()[row * 3 + k] = r[k * 12 + row] * 0.01f;
  }
  const Tensor want = TestNode("LSTM", 14).Input(x).Const(real_w).Const(real_r).Const(b).Evaluate();
  OnnxModel model(14);
  model.Input("x", {3, 2, 2});
  const auto bytes = [&](const std::string& name, const std::vector<int64_t>& dims,
                         const std::vector<int8_t>& values) {
    model.Weight(name, dims, onnx::TensorProto::INT8).set_raw_data(values.data(), values.size());
  };
  bytes("w", {1, 2, 12}, w);
  bytes("r", {1, 3, 12}, r);
  model.Floats("b", {1, 24}, F(b));
  model.Floats("w_scale", {1, 12}, F(scales));
  bytes("w_zero", {1, 12}, std::vector<int8_t>(12, 3));
  model.Floats("r_scale", {1}, {0.01f});
  bytes("r_zero", {1}, {0});
  onnx::NodeProto& node =
      model.Node("DynamicQuantizeLSTM",
                 {"x", "w", "r", "b", "", "", "", "", "w_scale", "w_zero", "r_scale", "r_zero"}, {"y"});
  node.set_domain("com.microsoft");
  model.Output("y");
  EXPECT_THAT(F(Outputs(model, {x})[0]), Pointwise(FloatNear(1e-6f), F(want)));
}

TEST(RecurrentNodes, Refusals) {
  const auto node = [](const char* type) {
    TestNode made(type, 14);
    made.Input(Counting({2, 1, 3}));
    return made;
  };
  const auto lstm = [&] { return node("LSTM").Const(Counting({1, 8, 3})).Const(Counting({1, 8, 2})); };
  EXPECT_THAT(lstm().Attr("direction", std::string("sideways")).Refusal(), HasSubstr("sideways"));
  EXPECT_THAT(lstm().Attr("layout", int64_t{2}).Refusal(), HasSubstr("layout is 2"));
  EXPECT_THAT(lstm().Attr("hidden_size", int64_t{3}).Refusal(), HasSubstr("hidden_size is 3"));
  EXPECT_THAT(lstm().Attr("activations", std::vector<std::string>{"Tanh"}).Refusal(),
              HasSubstr("1 activations"));
  EXPECT_THAT(lstm().Attr("activations", std::vector<std::string>{"Tanh", "Sin", "Tanh"}).Refusal(),
              HasSubstr("\"Sin\""));
  EXPECT_THAT(lstm().Const(Counting({1, 15})).Refusal(), HasSubstr("input 3 has shape 1x15"));
  EXPECT_THAT(lstm().Absent().Const(Ints32({1, 1})).Refusal(), HasSubstr("lengths"));
  EXPECT_THAT(lstm().Absent().Const(Ints({1}, {1})).Refusal(), HasSubstr("32-bit integers"));
  EXPECT_THAT(lstm().Absent().Absent().Input(Counting({1, 1, 3})).Refusal(), HasSubstr("a first h"));
  EXPECT_THAT(node("GRU").Const(Counting({1, 8, 3})).Const(Counting({1, 8, 2})).Refusal(),
              HasSubstr("input 1"));
  EXPECT_THAT(node("RNN").Const(Counting({1, 2, 3})).Refusal(), HasSubstr("input 2 is missing"));
}

}  // namespace
}  // namespace tilesmith
