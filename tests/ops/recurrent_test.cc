// LSTM, GRU and RNN: kernels against the reference.
#include "ops/recurrent/recurrent.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <cmath>

#include "tests/ops/test_node.h"
#include "tests/ops/typed_kernel_check.h"

namespace tilesmith {
namespace {

using testing::FloatNear;
using testing::Pointwise;

constexpr auto kGateKinds = std::to_array<GateKind>(
    {GateKind::kRelu, GateKind::kTanh, GateKind::kSigmoid, GateKind::kAffine, GateKind::kLeakyRelu,
     GateKind::kThresholdedRelu, GateKind::kScaledTanh, GateKind::kHardSigmoid, GateKind::kElu,
     GateKind::kSoftsign, GateKind::kSoftplus});

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
    made.inputs.push_back(Ints32(lengths));
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
  SameBits same_bits;
  for (Target cpu : TestCpus()) {
    cpu.cores = cpu.isa == Isa::kAvx2 ? cores % 4 + 1 : cores;
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
        ExpectMatches(want, output, place, 16 * rounding);
        same_bits.Expect(want.size(), output, place, cpu.isa);
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
    const Tensor lengths = Ints32({1, length});
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

TEST(RecurrentKernel, EveryFunctionHasAVectorForm) {
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

}  // namespace
}  // namespace tilesmith
