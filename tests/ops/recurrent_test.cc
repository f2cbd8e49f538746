// LSTM, GRU and RNN: kernels against the reference, the reference against formulas, and nodes of models.
#include "ops/recurrent/recurrent.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <cmath>

#include "tests/ops/test_node.h"
#include "tests/ops/typed_kernel_check.h"
#include "tests/support/ops/written_model.h"

namespace tilesmith {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

constexpr auto kGateKinds = std::to_array<GateKind>(
    {GateKind::kRelu, GateKind::kTanh, GateKind::kSigmoid, GateKind::kAffine, GateKind::kLeakyRelu,
     GateKind::kThresholdedRelu, GateKind::kScaledTanh, GateKind::kHardSigmoid, GateKind::kElu,
     GateKind::kSoftsign, GateKind::kSoftplus});

Tensor Uniform(const Shape& shape, TestRandom& random, float bound = 1) {
  Tensor tensor(shape);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.floats()[i] = random.Uniform(-bound, bound);
  return tensor;
}

Tensor Lengths(const std::vector<int32_t>& lengths) {
  return Stored<int32_t>({std::ssize(lengths)}, lengths);
}

struct RecurrentCase {
  RecurrentParams params;
  std::vector<Tensor> inputs;
};

struct CaseSizes {
  int64_t hidden, steps, batch;
};

// R is so small that states do not grow, and no function jumps: what differs by roundings stays
// so.
RecurrentCase RandomCase(TestRandom& random, CellKind cell, const CaseSizes& sizes) {
  const auto coin = [&] { return random.Integer(0, 1) == 1; };
  RecurrentCase made;
  RecurrentParams& p = made.params;
  p.cell = cell;
  p.hidden = sizes.hidden;
  p.batch_first = coin();
  p.reversed = coin() ? std::vector<bool>{false, true} : std::vector<bool>{coin()};
  const auto function = [&]() -> GateFunction {
    if (coin()) return {coin() ? GateKind::kSigmoid : GateKind::kTanh};
    GateKind kind = random.Pick(kGateKinds);
    if (kind == GateKind::kThresholdedRelu) kind = GateKind::kRelu;  // it jumps; FunctionsOfGates has it
    return {kind, random.Uniform(0.1f, 0.8f), random.Uniform(0.1f, 0.8f)};
  };
  for (size_t i = 0; i < p.reversed.size(); ++i) {
    CellFunctions functions{function(), function(), function()};
    if (random.Integer(0, 2) == 0) functions.clip = random.Uniform(0.1f, 1.0f);
    functions.input_forget = cell == CellKind::kLstm && random.Integer(0, 2) == 0;
    p.functions.push_back(functions);
  }
  p.reset_behind = cell == CellKind::kGru && coin();
  p.has_lengths = coin();
  p.has_state = coin();
  p.has_cell = cell == CellKind::kLstm && coin();
  p.has_peepholes = cell == CellKind::kLstm && coin();
  p.has_bias = p.reset_behind && coin();
  p.last_state = coin();
  p.last_cell = cell == CellKind::kLstm && coin();
  p.all_states = coin() || !(p.last_state || p.last_cell);

  const int64_t directions = p.directions(), rows = p.gates() * p.hidden, batch = sizes.batch;
  const Shape state = p.batch_first ? Shape{batch, directions, p.hidden} : Shape{directions, batch, p.hidden};
  made.inputs.push_back(Uniform(p.batch_first ? Shape{batch, sizes.steps, directions * rows}
                                              : Shape{sizes.steps, batch, directions * rows},
                                random, 2));
  if (p.has_lengths) {
    std::vector<int32_t> lengths(static_cast<size_t>(batch));
    for (int32_t& length : lengths) length = static_cast<int32_t>(random.Integer(0, sizes.steps));
    made.inputs.push_back(Lengths(lengths));
  }
  if (p.has_state) made.inputs.push_back(Uniform(state, random));
  if (p.has_cell) made.inputs.push_back(Uniform(state, random));
  if (p.has_peepholes) made.inputs.push_back(Uniform({directions, 3 * p.hidden}, random, 0.5f));
  if (p.has_bias) made.inputs.push_back(Uniform({directions, p.hidden}, random));
  Tensor weights =
      Uniform({directions, rows, p.hidden}, random, 0.7f / std::sqrt(static_cast<float>(p.hidden)));
  if (coin()) {
    made.inputs.push_back(std::move(weights));
  } else {
    p.weights = std::make_shared<const Tensor>(std::move(weights));
  }
  return made;
}

void CheckCase(const RecurrentCase& made, int cores) {
  const RecurrentOp op(made.params);
  std::vector<const Tensor*> pointers;
  std::vector<Shape> shapes;
  std::vector<DataType> types;
  for (const Tensor& input : made.inputs) {
    pointers.push_back(&input);
    shapes.push_back(input.shape());
    types.push_back(input.type());
  }
  const Tensor want = op.Reference(pointers), in_floats = op.ReferenceInFloats(pointers);
  ASSERT_EQ(want.shape(), op.InferShape(shapes));
  double rounding = 8 * kUlp, largest = 1;
  for (int64_t i = 0; i < want.size(); ++i) {
    rounding = std::max(rounding, double{std::abs(want.floats()[i] - in_floats.floats()[i])});
    largest = std::max(largest, double{std::abs(want.floats()[i])});
  }
  ASSERT_LT(rounding, 1e-5 * largest) << "the case says nothing";
  for (Target cpu : TestCpus()) {
    cpu.cores = cores;
    const auto kernel = op.MakeKernel({shapes, want.shape(), Layout::Nchw(), cpu, types});
    for (const Guard guard : {Guard::kAfter, Guard::kBefore}) {
      SCOPED_TRACE(fmt::format("{} of {} on {} of {} cores, {}", op.Signature(), ShapeToString(shapes[0]),
                               IsaName(cpu.isa), cores, guard == Guard::kAfter ? "end" : "start"));
      std::vector<std::unique_ptr<SpreadTensor>> spread;
      std::vector<InputView> views;
      for (const Tensor& input : made.inputs) {
        spread.push_back(std::make_unique<SpreadTensor>(input, Layout::Nchw(), guard, true));
        views.push_back({spread.back()->bytes(), spread.back()->stride});
        spread.back()->buffer.MakeReadOnly();
      }
      const KernelPlacement place(want.shape(), Layout::Nchw());
      for (const int threads : {1, 2, 3}) {
        GuardedTensor output(place.floats(), guard);
        RunInShares(*kernel, {views, output.output_view(place.stride()), nullptr}, Split::kEven, threads);
        ExpectMatches(want, output, Layout::Nchw(), 16 * rounding);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

constexpr CellKind kCells[] = {CellKind::kLstm, CellKind::kGru, CellKind::kRnn};

TEST(RecurrentKernel, RandomCells) {
  for (uint64_t seed = 1; seed <= 240; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    TestRandom random(seed);
    constexpr auto kHidden = std::to_array<int64_t>({1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 48, 65});
    CheckCase(RandomCase(random, kCells[seed % 3],
                         {random.Pick(kHidden), random.Integer(1, 6), random.Integer(1, 9)}),
              static_cast<int>(random.Integer(1, 4)));
    if (HasFatalFailure()) return;
  }
}

// Of so many units that threads share them, and of so many rows that these are shared.
TEST(RecurrentKernel, CellsOfManyUnitsAndRows) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    TestRandom random(seed);
    const CaseSizes sizes = seed % 2 == 0 ? CaseSizes{random.Integer(257, 270), 3, 1}
                                          : CaseSizes{random.Integer(30, 50), 3, random.Integer(20, 40)};
    CheckCase(RandomCase(random, kCells[seed % 3], sizes), 8);
    if (HasFatalFailure()) return;
  }
}

TEST(RecurrentKernel, ThreadsMeetAtEachStep) {
  TestRandom random(5);
  for (const CellKind cell : kCells) {
    RecurrentCase made = RandomCase(random, cell, {320, 40, 1});
    const RecurrentOp op(made.params);
    std::vector<const Tensor*> pointers;
    KernelRequest request{.inputs = {}, .output = {}, .layout = Layout::Nchw(), .cpu = TestCpu()};
    request.cpu.cores = 4;
    std::vector<InputView> views;
    for (const Tensor& input : made.inputs) {
      pointers.push_back(&input);
      request.inputs.push_back(input.shape());
      request.input_types.push_back(input.type());
      views.push_back(input.input_view());
    }
    request.output = op.InferShape(request.inputs);
    const auto kernel = op.MakeKernel(request);
    const Tensor want = op.Reference(pointers);
    Tensor alone;
    for (const int threads : {1, 2, 3}) {
      Tensor output(request.output);
      AlignedBuffer scratch(static_cast<size_t>(kernel->ScratchBytes(threads)));
      RunKernel(*kernel, {views, output.output_view(), scratch.data()}, threads);
      EXPECT_THAT(F(output), Pointwise(FloatNear(1e-4f), F(want))) << op.Signature();
      if (threads == 1) alone = output;
      EXPECT_EQ(F(output), F(alone)) << threads << " threads";
    }
  }
}

TEST(RecurrentKernel, NoStepsLeaveTheFirstStates) {
  RecurrentCase made;
  made.params = {.cell = CellKind::kLstm, .hidden = 3, .reversed = {false}, .functions = {CellFunctions()}};
  made.params.has_state = made.params.last_state = true;
  made.params.weights = std::make_shared<const Tensor>(Shape{1, 12, 3});
  made.inputs = {Tensor({0, 2, 12}), Counting({1, 2, 3})};
  CheckCase(made, 8);
}

// A NaN of one row stays in that row.
TEST(RecurrentKernel, NanStaysInItsRow) {
  for (const CellKind cell : kCells) {
    TestRandom random(3);
    RecurrentParams params{.cell = cell, .hidden = 20, .reversed = {false}, .functions = {CellFunctions()}};
    params.functions[0] = {{GateKind::kSigmoid}, {GateKind::kTanh}, {GateKind::kTanh}, 2.0f};
    params.weights = std::make_shared<const Tensor>(Uniform({1, params.gates() * 20, 20}, random, 0.2f));
    const RecurrentOp op(params);
    Tensor x = Uniform({3, 2, params.gates() * 20}, random);
    x.floats()[params.gates() * 20 * 2 + 5] = kNan;  // step 1, row 0
    const Tensor* const inputs[] = {&x};
    const Tensor want = op.Reference(inputs);
    for (const Target& cpu : TestCpus()) {
      const auto kernel = op.MakeKernel({{x.shape()}, want.shape(), Layout::Nchw(), cpu});
      const InputView view = x.input_view();
      Tensor output(want.shape());
      RunInShares(*kernel, {{&view, 1}, output.output_view(), nullptr});
      for (int64_t i = 0; i < want.size(); ++i) {
        const bool is_nan = std::isnan(want.floats()[i]);
        EXPECT_EQ(std::isnan(output.floats()[i]), is_nan) << op.Type() << " " << i;
        EXPECT_FALSE(is_nan && i / 20 % 2 == 1) << i;
      }
      EXPECT_TRUE(std::isnan(output.floats()[2 * 40]));
    }
  }
}

TEST(RecurrentKernel, LengthsOutsideTheStepsAreRefused) {
  RecurrentParams params{
      .cell = CellKind::kRnn, .hidden = 2, .reversed = {false}, .functions = {CellFunctions()}};
  params.has_lengths = true;
  params.weights = std::make_shared<const Tensor>(Shape{1, 2, 2});
  const RecurrentOp op(params);
  const Tensor x({3, 2, 2});
  for (const int32_t length : {-1, 4}) {
    const Tensor lengths = Lengths({1, length});
    const Tensor* const inputs[] = {&x, &lengths};
    EXPECT_THROW(op.Reference(inputs), Error);
    const auto kernel = op.MakeKernel(
        {{x.shape(), {2}}, {3, 1, 2, 2}, Layout::Nchw(), TestCpu(), {DataType::kF32, DataType::kI32}});
    Tensor output({3, 1, 2, 2});
    AlignedBuffer scratch(static_cast<size_t>(kernel->ScratchBytes(1)));
    const InputView views[] = {x.input_view(), lengths.input_view()};
    EXPECT_THROW(RunKernel(*kernel, {views, output.output_view(), scratch.data()}, 1), Error);
  }
}

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
                            .Const(Lengths({2}))
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

TEST(RecurrentNodes, EveryFunctionHasAVectorForm) {
  for (const GateKind kind : kGateKinds) {
    RecurrentParams params{.cell = CellKind::kRnn, .hidden = 37, .reversed = {false}};
    params.functions = {{{kind, 0.3f, 0.6f}, {}, {}}};
    params.weights = std::make_shared<const Tensor>(Shape{1, 37, 37});
    Tensor x({1, 1, 37});
    for (int64_t i = 0; i < 37; ++i) x.floats()[i] = static_cast<float>(i - 18) / 4;
    RecurrentCase made{params, {}};
    made.inputs.push_back(std::move(x));
    CheckCase(made, 1);
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
  made.inputs = {Uniform(layout == 1 ? Shape{3, 5, 4} : Shape{5, 3, 4}, random), Lengths({5, 2, 0})};
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
  alone.inputs[1] = Lengths({2, 2, 2});
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
  EXPECT_THAT(lstm().Absent().Const(Lengths({1, 1})).Refusal(), HasSubstr("lengths"));
  EXPECT_THAT(lstm().Absent().Const(Ints({1}, {1})).Refusal(), HasSubstr("32-bit integers"));
  EXPECT_THAT(lstm().Absent().Absent().Input(Counting({1, 1, 3})).Refusal(), HasSubstr("a first h"));
  EXPECT_THAT(node("GRU").Const(Counting({1, 8, 3})).Const(Counting({1, 8, 2})).Refusal(),
              HasSubstr("input 1"));
  EXPECT_THAT(node("RNN").Const(Counting({1, 2, 3})).Refusal(), HasSubstr("input 2 is missing"));
}

}  // namespace
}  // namespace tilesmith
