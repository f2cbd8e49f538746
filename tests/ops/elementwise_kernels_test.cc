// Functions of one and two operands: every kind, shapes that broadcast in every way, against the reference.
#include "ops/elementwise/binary.h"
#include "ops/elementwise/functions.h"
#include "tests/ops/kernel_check.h"
#include "tests/ops/test_node.h"

namespace tilesmith {
namespace {

struct FunctionCase {
  const char* type;
  double tolerance;  // relative to the largest of 1 and the value
  std::vector<std::pair<const char*, Attribute>> attributes = {};
};

const std::vector<FunctionCase>& FunctionCases() {
  static const std::vector<FunctionCase> cases = {
      {"Abs", 0},
      {"Acos", 2 * kUlp},
      {"Acosh", 2 * kUlp},
      {"Asin", 2 * kUlp},
      {"Asinh", 2 * kUlp},
      {"Atan", 4 * kUlp},
      {"Atanh", 2 * kUlp},
      {"Ceil", 0},
      {"Celu", 4 * kUlp},
      {"Celu", 8 * kUlp, {{"alpha", 2.5f}}},
      {"Cos", 4 * kUlp},
      {"Cosh", 2 * kUlp},
      {"Elu", 4 * kUlp},
      {"Elu", 4 * kUlp, {{"alpha", 0.3f}}},
      {"Erf", 4 * kUlp},
      {"Exp", 8 * kUlp},
      {"Floor", 0},
      {"Gelu", 8 * kUlp},
      {"Gelu", 16 * kUlp, {{"approximate", std::string("tanh")}}},
      {"Log", 4 * kUlp},
      {"Mish", 8 * kUlp},
      {"Neg", 0},
      {"Reciprocal", kUlp},
      {"Round", 0},
      {"Selu", 8 * kUlp},
      {"Shrink", 0},
      {"Shrink", kUlp, {{"bias", 0.7f}, {"lambd", 1.5f}}},
      {"Sign", 0},
      {"Sin", 4 * kUlp},
      {"Sinh", 2 * kUlp},
      {"Softplus", 4 * kUlp},
      {"Softsign", 2 * kUlp},
      {"Sqrt", kUlp},
      {"Tan", 2 * kUlp},
      {"ThresholdedRelu", 0},
  };
  return cases;
}

std::shared_ptr<const FunctionOp> FunctionOf(const FunctionCase& c) {
  TestNode node(c.type, 20);
  node.Input(Counting({1}));
  for (const auto& [name, value] : c.attributes) node.Attr(name, value);
  return std::dynamic_pointer_cast<const FunctionOp>(node.Build().op);
}

TEST(ElementwiseKernels, Functions) {
  for (const FunctionCase& c : FunctionCases()) {
    const auto op = FunctionOf(c);
    ASSERT_NE(op, nullptr) << c.type;
    ExpectRunsEverywhere(*op, {{1, 9, 3, 3}});
    const double tolerance =
        c.tolerance * 64;  // |values| <= e^4, but for 1 / x and tan x next to their poles
    const double wide = op->Type() == "Reciprocal" || op->Type() == "Tan" ? 1e-2 : tolerance;
    for (const Shape& shape :
         {Shape{}, Shape{0}, Shape{1}, Shape{3, 0, 2}, Shape{2, 9, 3, 5}, Shape{1, 16, 2, 2},
          Shape{2, 3, 2, 2, 5}, Shape{1, 1, 1, 4099}, Shape{1, 2, 1, 3, 1, 2, 1, 5}}) {
      Check({op, {shape}, wide});
    }
  }
}

TEST(ElementwiseKernels, FunctionsAtTheirLimits) {
  std::vector<float> xs = {0,     -0.0f,  1e-40f, -1e-40f, 1e-20f, -1e-20f, 1e-6f, -1e-6f, 0.5f,   -0.5f,
                           1.5f,  2.5f,   -2.5f,  1,       -1,     0.7f,    -0.7f, 0.99f,  1.01f,  4.2f,
                           -4.2f, 5.9f,   -5.94f, -5.95f,  -9,     20,      -20,   50,     -50,    87,
                           88,    88.6f,  89,     -87,     -88,    -100,    -104,  39000,  -39001, 123456,
                           1e30f, -1e30f, kInf,   -kInf,   kNan,   3.4e38f};
  TestRandom random(5);
  for (int i = 0; i < 2000; ++i) xs.push_back(random.Uniform(-12, 12));
  const auto count = static_cast<int64_t>(xs.size());
  for (const FunctionCase& c : FunctionCases()) {
    const auto op = FunctionOf(c);
    SameBits same_bits;
    for (const Isa isa : kIsas) {
      if (isa > TestCpu().isa) continue;
      Tensor in = Floats({count}, xs), out({count});
      const InputView view = in.input_view();
      RunInShares(*op->MakeKernel({{{count}}, {count}, Layout::Nchw(), CapIsa(TestCpu(), isa)}),
                  {{&view, 1}, out.output_view(), nullptr});
      same_bits.Expect(count, isa, [&](int64_t i) { return out.floats()[i]; });
      for (int64_t i = 0; i < count; ++i) {
        SCOPED_TRACE(testing::Message() << op->Signature() << " of " << xs[i] << " on " << IsaName(isa));
        const auto want = static_cast<float>(Apply(op->function(), xs[i]));
        const float got = out.floats()[i];
        if (std::isnan(want) || std::isinf(want)) {
          // What is next to the largest float may be it.
          const bool same = std::isnan(want) ? std::isnan(got) : got == want || std::abs(got) > 3.3e38f;
          EXPECT_TRUE(same) << got << " instead of " << want;
          continue;
        }
        EXPECT_NEAR(got, want, c.tolerance * std::max(1.0, double{std::abs(want)}) + 1e-37);
      }
    }
  }
}

constexpr BinaryKind kBinaryKinds[] = {BinaryKind::kAdd, BinaryKind::kSub,  BinaryKind::kMul,
                                       BinaryKind::kDiv, BinaryKind::kPow,  BinaryKind::kMin,
                                       BinaryKind::kMax, BinaryKind::kPRelu};

// Powers go through another function than the reference's.
double ToleranceOf(BinaryKind kind) { return kind == BinaryKind::kPow ? 1e-3 : 0; }

TEST(ElementwiseKernels, BroadcastOfEveryKind) {
  for (const BinaryKind kind : kBinaryKinds) {
    const auto op = std::make_shared<BinaryOp>(kind);
    ExpectRunsEverywhere(*op, {{2, 9, 3, 3}, {2, 9, 1, 1}});
    for (const Shape& shape : {Shape{2, 9, 3, 5}, Shape{1, 16, 4, 4}}) {
      const int64_t n = shape[0], c = shape[1], h = shape[2], w = shape[3];
      for (const Shape& other :
           {shape, Shape{n, c, 1, 1}, Shape{1, c, 1, 1}, Shape{1, 1, h, w}, Shape{n, 1, h, w},
            Shape{n, 1, 1, 1}, Shape{1, 1, 1, w}, Shape{n, c, h, 1}, Shape{1, 1, 1, 1}}) {
        Check({op, {shape, other}, ToleranceOf(kind)});
        if (kind != BinaryKind::kPRelu) Check({op, {other, shape}, ToleranceOf(kind)});
      }
    }
  }
}

// Shapes that numpy broadcasts: the output's sizes, each replaced by 1 or the first ones left out.
std::vector<Shape> RandomShapes(TestRandom& random, int64_t inputs) {
  constexpr int64_t kSizes[] = {0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 17};
  Shape output(random.Integer(0, 8));
  int64_t elements = 1;
  for (int64_t& size : output) {
    size = elements > 2000 ? 1 : random.Pick(std::span(kSizes));
    elements *= std::max<int64_t>(size, 1);
  }
  std::vector<Shape> shapes;
  for (int64_t i = 0; i < inputs; ++i) {
    Shape shape = output;
    for (int64_t& size : shape) size = random.Integer(0, 2) == 0 ? 1 : size;
    if (random.Integer(0, 2) == 0)
      shape.erase(shape.begin(), shape.begin() + random.Integer(0, static_cast<int64_t>(shape.size())));
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

TEST(ElementwiseKernels, BroadcastOfRandomShapes) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestRandom random(seed);
    const BinaryKind kind = random.Pick(std::span(kBinaryKinds).first(7));
    Check({std::make_shared<BinaryOp>(kind), RandomShapes(random, 2), ToleranceOf(kind), false,
           random.Integer(0, 3) == 0 ? 5 : 0});
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(ElementwiseKernels, LargestOfMany) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestRandom random(1000 + seed);
    const BinaryKind kind = random.Integer(0, 1) == 0 ? BinaryKind::kMin : BinaryKind::kMax;
    Check({std::make_shared<BinaryOp>(kind), RandomShapes(random, random.Integer(2, 5)), 0, false, 5});
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(ElementwiseKernels, LongRowsAndManyTasks) {
  const auto add = std::make_shared<BinaryOp>(BinaryKind::kAdd);
  Check({add, {{2, 3, 70, 71}, {2, 3, 1, 1}}});
  Check({add, {{2, 3, 70, 71}, {70, 71}}});
  Check({add, {{2, 33, 30, 11}, {1, 33, 1, 11}}});
  Check({add, {{1, 5000, 4}, {1, 1, 4}}});
  Check({add, {{1, 1, 3}, {1, 5000, 3}}});
  Check({add, {{1, 2, 40, 30, 30}, {1, 2, 40, 1, 1}}});
}

TEST(ElementwiseKernels, PowersThatAreProducts) {
  for (const float exponent : {2.0f, 3.0f, -1.0f, 0.0f, 0.5f}) {
    const Tensor x = Floats({2, 6}, {-2, -1, -0.5f, 0, 0.5f, 3, 1e20f, kInf, -kInf, kNan, 7, 1.5f});
    const Tensor power = Floats({1}, {exponent});
    const BinaryOp op(BinaryKind::kPow);
    const Tensor* inputs[] = {&x, &power};
    const Tensor want = op.Reference(inputs);
    Tensor got(x.shape());
    const InputView views[] = {x.input_view(), power.input_view()};
    RunInShares(*op.MakeKernel({{x.shape(), power.shape()}, x.shape(), Layout::Nchw(), TestCpu()}),
                {views, got.output_view(), nullptr});
    for (int64_t i = 0; i < x.size(); ++i) {
      const float a = want.floats()[i], b = got.floats()[i];
      EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 4 * kUlp * std::abs(a))
          << x.floats()[i] << " ^ " << exponent << " is " << a << ", not " << b;
    }
  }
}

TEST(ElementwiseKernels, ImportOfPowersAndExtremes) {
  const Tensor x = Floats({2, 2}, {1, 4, 9, 16});
  EXPECT_EQ(F(TestNode("Pow").Input(x).Const(Floats({}, {0.5f})).Evaluate()),
            (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(F(TestNode("Pow").Input(x).Input(Floats({}, {2})).Evaluate()),
            (std::vector<float>{1, 16, 81, 256}));
  EXPECT_EQ(I(TestNode("Pow").Const(Ints({3}, {2, -3, 7})).Const(Ints({}, {3})).Evaluate()),
            (IntList{8, -27, 343}));
  EXPECT_EQ(I(TestNode("Max").Const(Ints({3}, {2, -3, 7})).Const(Ints({}, {3})).Evaluate()),
            (IntList{3, 3, 7}));
  EXPECT_EQ(F(TestNode("Min").Input(x).Input(Floats({2}, {3, 3})).Input(Floats({2, 1}, {2, 20})).Evaluate()),
            (std::vector<float>{1, 2, 3, 3}));
  const Tensor negative = Floats({1, 2, 3}, {-1, -1, -1, -1, -1, 5});
  EXPECT_EQ(F(TestNode("PRelu").Input(negative).Const(Floats({3}, {1, 2, 3})).Evaluate()),
            (std::vector<float>{-1, -2, -3, -1, -2, 5}));
}

}  // namespace
}  // namespace tilesmith
