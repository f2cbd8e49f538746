// Batched matrix products and attention: kernels against the references, and the graphs that exporters write.
#include <fmt/format.h>

#include <cmath>

#include "ops/dense/attention.h"
#include "ops/dense/gemm.h"
#include "ops/dense/matmul.h"
#include "ops/dense/softmax.h"
#include "ops/dense/tasks.h"
#include "ops/elementwise/activations.h"
#include "ops/movement/transpose.h"
#include "ops/passes/passes.h"
#include "tests/ops/kernel_check.h"
#include "tests/ops/test_net.h"

namespace tilesmith {
namespace {

using Id = Graph::NodeId;

std::shared_ptr<const Op> MatMul(MatMulParams params = {}) {
  return std::make_shared<MatMulOp>(std::move(params));
}

std::shared_ptr<const Tensor> SmallIntegers(Shape shape, uint64_t seed) {
  auto tensor = std::make_shared<Tensor>(std::move(shape));
  FillIntegers({tensor->floats(), static_cast<size_t>(tensor->size())}, seed);
  return tensor;
}

// Integers are exact whatever the order of the sum.
void CheckExact(MatMulParams params, std::vector<Shape> inputs) {
  SCOPED_TRACE(MatMulOp(params).Signature());
  Check({MatMul(std::move(params)), std::move(inputs), 0, true});
}

TEST(MatMulKernel, MatricesOfAnySize) {
  for (const int64_t m : {1, 2, 5, 6, 7, 13, 95, 97, 200}) {
    for (const int64_t n : {1, 7, 8, 31, 32, 33, 65}) {
      for (const int64_t k : {1, 3, 64, 257}) CheckExact({}, {{m, k}, {k, n}});
    }
  }
}

TEST(MatMulKernel, Broadcasting) {
  CheckExact({}, {{2, 3, 5, 7}, {2, 3, 7, 9}});
  CheckExact({}, {{2, 3, 5, 7}, {7, 9}});
  CheckExact({}, {{5, 7}, {2, 3, 7, 9}});
  CheckExact({}, {{2, 1, 5, 7}, {3, 7, 9}});
  CheckExact({}, {{1, 1, 5, 7}, {4, 3, 7, 9}});
  CheckExact({}, {{2, 1, 3, 1, 5, 7}, {4, 1, 2, 7, 40}});
}

TEST(MatMulKernel, Vectors) {
  CheckExact({}, {{7}, {7}});
  CheckExact({}, {{7}, {7, 40}});
  CheckExact({}, {{40, 7}, {7}});
  CheckExact({}, {{7}, {2, 3, 7, 9}});
  CheckExact({}, {{2, 3, 5, 7}, {7}});
}

TEST(MatMulKernel, NothingToAddUp) {
  CheckExact({}, {{3, 0}, {0, 5}});
  CheckExact({.bias = SmallIntegers({5}, 3)}, {{3, 0}, {0, 5}});
  CheckExact({}, {{0, 4}, {4, 5}});
}

TEST(MatMulKernel, Arrangements) {
  const Arrangement transposed{{}, {0, 2, 1}};
  for (const int64_t m : {1, 20}) {
    for (const int64_t n : {1, 8, 50}) {
      for (const int64_t k : {4, 300}) {
        CheckExact({.a = transposed}, {{3, k, m}, {3, k, n}});
        CheckExact({.b = transposed}, {{3, m, k}, {3, n, k}});
        CheckExact({.a = transposed, .b = transposed}, {{3, k, m}, {1, n, k}});
        CheckExact({.out_perm = {0, 2, 1}}, {{3, m, k}, {3, k, n}});
      }
    }
  }
  // Heads that lie side by side, as attention reads and writes them; also with neither axis dense.
  const Arrangement heads{{2, 11, 3, 16}, {0, 2, 1, 3}}, keys{{2, 11, 3, 16}, {0, 2, 3, 1}};
  CheckExact({.a = heads, .b = keys}, {{2, 11, 48}, {2, 11, 48}});
  CheckExact({.b = heads, .out_perm = {0, 2, 1, 3}, .out_shape = {2, 40, 48}}, {{2, 3, 40, 11}, {2, 11, 48}});
  CheckExact({.b = {{}, {0, 2, 1, 3}}}, {{2, 3, 5, 4}, {2, 4, 3, 6}});
  CheckExact({.b = {{}, {0, 3, 1, 2}}}, {{2, 7, 5, 3}, {2, 3, 6, 7}});
}

TEST(MatMulKernel, SchedulesDoNotMatter) {
  TestRandom random(17);
  const int vector = TestCpu().vector_floats();
  for (int i = 0; i < 200 && !testing::Test::HasFatalFailure(); ++i) {
    MatMulSchedule s;
    // For the narrowest vectors, which have the fewest registers: Check runs on all.
    s.tile_vectors = static_cast<int>(random.Integer(1, kMaxTileVectors));
    s.tile_rows = static_cast<int>(random.Integer(1, MostTileRows(4, s.tile_vectors)));
    s.panel_rows = random.Pick(std::vector<int64_t>{0, 10, 12, 33, 96});
    s.panel_columns = random.Pick(std::vector<int64_t>{0, 16, 48, 64, kMaxPanelColumns});
    s.panel_terms = random.Pick(std::vector<int64_t>{1, 32, 100, 1024});
    s.pack_left = random.Integer(0, 1) == 1;
    s.pack_right = static_cast<Packing>(random.Integer(0, 2));
    s.rows_inner = random.Integer(0, 1) == 1;
    const int64_t m = random.Integer(1, 70), n = random.Integer(1, 140), k = random.Integer(1, 210);
    SCOPED_TRACE(fmt::format("tile {}x{}, panel {}x{}x{}, packing {} {}, vectors of {}", s.tile_rows,
                             s.tile_vectors, s.panel_rows, s.panel_columns, s.panel_terms, s.pack_left,
                             static_cast<int>(s.pack_right), vector));
    const bool left = random.Integer(0, 1) == 1, right = random.Integer(0, 1) == 1;
    const Arrangement transposed{{}, {0, 2, 1}};
    MatMulParams params{.a = left ? transposed : Arrangement{}, .b = right ? transposed : Arrangement{}};
    params.schedule = s;
    const std::vector<Shape> inputs = {left ? Shape{2, k, m} : Shape{2, m, k},
                                       right ? Shape{2, n, k} : Shape{2, k, n}};
    CheckExact(params, inputs);
    if (i % 8 != 0) continue;
    SameBits same_bits;
    for (const MatMulSchedule& schedule : {s, MatMulSchedule{}}) {
      params.schedule = schedule;
      Check({MatMul(params), inputs, 1e-2}, same_bits);
    }
  }
}

TEST(MatMulKernel, PanelsAreWideWhereTheLeftSideLeavesTheCache) {
  Target cpu = TestCpu();
  cpu.l2_bytes = 512 << 10;
  cpu.cores = 2;
  EXPECT_EQ(DefaultPanelColumns(197, 197, 64, cpu), kPanelColumns);
  EXPECT_EQ(DefaultPanelColumns(150, 1024, 12544, cpu), kMaxPanelColumns);
  EXPECT_EQ(DefaultPanelColumns(150, 40, 12544, cpu), kPanelColumns);
  cpu.cores = 8;  // would wait for the others
  EXPECT_EQ(DefaultPanelColumns(150, 1024, 12544, cpu), 64);
  EXPECT_EQ(DefaultPanelColumns(0, 1024, 12544, cpu), kPanelColumns);
}

TEST(MatMulKernel, WhatIsFusedBehind) {
  const auto bias = SmallIntegers({40}, 5);
  CheckExact({.scale = 0.5f, .bias = bias, .activation = ParseActivation("relu")}, {{2, 9, 20}, {2, 20, 40}});
  Check({MatMul({.scale = 0.125f, .bias = bias, .activation = ParseActivation("tanh")}),
         {{2, 9, 20}, {20, 40}},
         4 * kUlp + 40 * 22 * kUlp});
}

TEST(MatMulOp, RefusesWhatDoesNotFit) {
  const auto refused = [](MatMulParams params, std::vector<Shape> shapes) {
    try {
      MatMulOp(std::move(params)).InferShape(shapes);
    } catch (const Error& error) {
      return error.code() == ErrorCode::kBadModel;
    }
    return false;
  };
  EXPECT_TRUE(refused({}, {{2, 3}, {4, 5}}));
  EXPECT_TRUE(refused({}, {{2, 2, 3}, {3, 3, 5}}));
  EXPECT_TRUE(refused({}, {{}, {3, 5}}));
  EXPECT_TRUE(refused({.a = {{}, {0, 0}}}, {{2, 3}, {3, 5}}));
  EXPECT_TRUE(refused({.a = {{3, 2}, {1, 0}}}, {{2, 3}, {3, 5}}));  // images would not stay apart
  EXPECT_TRUE(refused({.bias = SmallIntegers({4}, 1)}, {{2, 3}, {3, 5}}));
  EXPECT_TRUE(refused({.out_shape = {2, 6}}, {{2, 3}, {3, 5}}));
}

double ScoreTolerance(int64_t width, int64_t keys, float scale, double largest) {
  // Scores are off by width + 2 roundings of their magnitude; exp makes that relative; sums of keys terms
  // follow.
  const double scores =
      static_cast<double>(width + 2) * static_cast<double>(width) * scale * largest * largest;
  return (2 * scores + 16 + 2.0 * static_cast<double>(keys)) * kUlp * largest;
}

void CheckAttention(AttentionParams params, std::vector<Shape> inputs, int64_t nan_every = 0) {
  const AttentionOp op(params);
  SCOPED_TRACE(op.Signature());
  const AttentionShapes s = ShapesOf(params, inputs);
  const double tolerance = ScoreTolerance(s.width, s.keys, params.scale, 2);
  Check({std::make_shared<AttentionOp>(std::move(params)), std::move(inputs), tolerance, false, nan_every});
}

TEST(AttentionKernel, RowsAndKeysOfAnyNumber) {
  for (const int64_t rows : {1, 5, 64, 65, 150}) {
    for (const int64_t keys : {1, 31, 128, 129, 300}) {
      for (const bool causal : {false, true}) {
        CheckAttention({.scale = 0.25f, .causal = causal}, {{2, rows, 17}, {2, keys, 17}, {2, keys, 40}});
      }
    }
  }
  CheckAttention({.scale = 0.1f}, {{1, 3, 300}, {1, 9, 300}, {1, 9, 1}});
}

TEST(AttentionKernel, MasksBroadcast) {
  for (const Shape& mask : {Shape{70, 140}, Shape{1, 140}, Shape{70, 1}, Shape{3, 70, 140},
                            Shape{2, 1, 1, 140}, Shape{2, 3, 70, 140}, Shape{1, 1}}) {
    CheckAttention({.scale = 0.5f, .masked = true}, {{2, 3, 70, 8}, {2, 3, 140, 8}, {2, 3, 140, 8}, mask});
  }
}

TEST(AttentionKernel, HeadsSideBySide) {
  const Arrangement heads{{2, 70, 3, 16}, {0, 2, 1, 3}};
  CheckAttention({.q = heads,
                  .k = heads,
                  .v = heads,
                  .out_perm = {0, 2, 1, 3},
                  .out_shape = {2, 70, 48},
                  .scale = 0.25f},
                 {{2, 70, 48}, {2, 70, 48}, {2, 70, 48}});
  const Arrangement queries{{2, 9, 2, 3, 8}, {0, 2, 3, 1, 4}}, shared{{2, 70, 2, 1, 8}, {0, 2, 3, 1, 4}};
  CheckAttention({.q = queries,
                  .k = shared,
                  .v = shared,
                  .out_perm = {0, 2, 3, 1, 4},
                  .out_shape = {2, 9, 48},
                  .scale = 0.3f},
                 {{2, 9, 48}, {2, 70, 16}, {2, 70, 16}});
}

TEST(AttentionKernel, WhatIsMaskedAway) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  constexpr int64_t kRows = 3, kKeys = 300;
  Tensor q({1, kRows, 4}), k({1, kKeys, 4}), v({1, kKeys, 4}), mask({kRows, kKeys});
  for (Tensor* tensor : {&q, &k, &v}) FillUniform({tensor->floats(), static_cast<size_t>(tensor->size())}, 5);
  // All of the first block, all but one key far behind it, and everything.
  std::fill_n(mask.floats(), 200, kNone);
  std::fill_n(mask.floats() + kKeys, kKeys, kNone);
  mask.floats()[kKeys + 290] = -1000;
  std::fill_n(mask.floats() + 2 * kKeys, kKeys, kNone);
  const AttentionOp op({.scale = 1, .masked = true});
  const Tensor* inputs[] = {&q, &k, &v, &mask};
  const Tensor want = op.Reference(inputs);
  const Target cpu = TestCpu();
  const std::vector<Shape> shapes = {q.shape(), k.shape(), v.shape(), mask.shape()};
  const auto kernel = op.MakeKernel({shapes, want.shape(), Layout::Nchw(), cpu});
  Tensor got(want.shape());
  AlignedBuffer scratch(static_cast<size_t>(kernel->ScratchBytes(1)));
  const std::vector<InputView> views = {q.input_view(), k.input_view(), v.input_view(), mask.input_view()};
  kernel->Run({views, got.output_view(), scratch.data()}, 0, {0, kernel->Tasks(0), 0});
  for (int64_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want.floats()[i])) {
      EXPECT_TRUE(std::isnan(got.floats()[i])) << i;
    } else {
      EXPECT_NEAR(got.floats()[i], want.floats()[i], 1e-5) << i;
    }
  }
  EXPECT_TRUE(std::isnan(got.floats()[2 * 4]));
}

TEST(AttentionKernel, NansStay) { CheckAttention({.scale = 1}, {{2, 9, 3}, {2, 40, 3}, {2, 40, 5}}, 37); }

// Graphs as exporters write them.

struct ProductNet : Net {
  Id Transpose(Id x, std::vector<int64_t> perm) {
    return graph.Add("", std::make_shared<TransposeOp>(std::move(perm)), {x});
  }
  Id Reshape(Id x, Shape shape) {
    return graph.Add("", std::make_shared<ViewOp>("Reshape", std::move(shape)), {x});
  }
  Id Dense(const std::string& name, Id x, int64_t n, bool bias = true) {
    const int64_t k = graph.node(x).shape.back();
    const Id product = graph.Add(name, std::make_shared<GemmOp>(RandomTensor({n, k}, seed++), nullptr), {x});
    if (!bias) return product;
    const Id row = graph.Add("", std::make_shared<ConstantOp>(RandomTensor({n}, seed++)), {});
    return graph.Add("", std::make_shared<BinaryOp>(BinaryKind::kAdd), {row, product});
  }
  Id Times(Id x, float factor) {
    const size_t channels = graph.node(x).shape[1];
    return graph.Add("",
                     std::make_shared<ScaleShiftOp>(std::vector<float>(channels, factor),
                                                    std::vector<float>(channels, 0.f)),
                     {x});
  }
  Id Product(Id a, Id b) { return graph.Add("", std::make_shared<MatMulOp>(), {a, b}); }
  Id Softmax(Id x) {
    const auto axis = static_cast<int64_t>(graph.node(x).shape.size()) - 1;
    return graph.Add("", std::make_shared<SoftmaxOp>(axis, axis), {x});
  }
};

int CountOf(const Graph& graph, std::string_view type) {
  int count = 0;
  for (Id id = 0; id < graph.size(); ++id) count += graph.node(id).op->Type() == type;
  return count;
}

TEST(ProductPasses, AttentionAsPyTorchExportsIt) {
  for (const bool masked : {false, true}) {
    ProductNet net;
    const Id x = net.Input("x", {2, 17, 24});
    std::optional<Id> mask;
    if (masked) mask = net.Input("mask", {2, 1, 1, 17});
    const auto heads = [&](const std::string& name) {
      return net.Reshape(net.Dense(name, x, 24), {2, 17, 3, 8});
    };
    const Id q = net.Times(net.Transpose(heads("q"), {0, 2, 1, 3}), 0.6f);
    const Id k = net.Times(net.Transpose(heads("k"), {0, 2, 3, 1}), 0.6f);
    const Id v = net.Transpose(heads("v"), {0, 2, 1, 3});
    Id scores = net.Product(q, k);
    if (mask) scores = net.Add("", scores, *mask);
    const Id mixed = net.Transpose(net.Product(net.Softmax(scores), v), {0, 2, 1, 3});
    const Id projected = net.Dense("projection", net.Reshape(mixed, {2, 17, 24}), 24);
    net.graph.MarkOutput(net.Add("y", x, projected));
    const Graph optimized = OptimizeGraph(net.graph);
    EXPECT_EQ(CountOf(optimized, "Attention"), 1);
    EXPECT_EQ(CountOf(optimized, "MatMul") + CountOf(optimized, "Gemm") + CountOf(optimized, "Add"), 0);
    EXPECT_EQ(CountOf(optimized, "Softmax") + CountOf(optimized, "ScaleShift"), 0);
    EXPECT_EQ(CountOf(optimized, "Conv"), 4);
    for (Id id = 0; id < optimized.size(); ++id) {
      const Op& op = *optimized.node(id).op;
      EXPECT_TRUE(op.Type() != "Transpose" || op.IsView());
    }
    ExpectSame(net.graph, optimized);
  }
}

// torch.nn.MultiheadAttention: tokens first, batch and heads merged.
TEST(ProductPasses, AttentionOfMergedHeads) {
  ProductNet net;
  const Id x = net.Input("x", {9, 1, 16});
  const auto heads = [&](const std::string& name) {
    const Id merged = net.Transpose(net.Reshape(net.Dense(name, x, 16), {9, 2, 8}), {1, 0, 2});
    return net.Reshape(merged, {1, 2, 9, 8});
  };
  const Id q = heads("q"), k = net.Transpose(net.Times(heads("k"), 0.35f), {0, 1, 3, 2}), v = heads("v");
  const Id mixed = net.Product(net.Softmax(net.Product(q, k)), v);
  net.graph.MarkOutput(net.Dense("y", net.Reshape(net.Transpose(mixed, {2, 0, 1, 3}), {9, 16}), 16));
  const Graph optimized = OptimizeGraph(net.graph);
  EXPECT_EQ(CountOf(optimized, "Attention"), 1);
  EXPECT_EQ(CountOf(optimized, "Softmax"), 0);
  ExpectSame(net.graph, optimized);
}

// As YOLO 10 and later write it: channels first, the values on the left.
TEST(ProductPasses, AttentionOfColumns) {
  for (const bool merged : {false, true}) {
    ProductNet net;
    const Id q = net.Input("q", {2, 3, 4, 21}), k = net.Input("k", {2, 3, 4, 21}),
             v = net.Input("v", {2, 3, 8, 21});
    const Id scores = net.Times(net.Product(net.Transpose(q, {0, 1, 3, 2}), k), 0.5f);
    Id mixed = net.Product(v, net.Transpose(net.Softmax(scores), {0, 1, 3, 2}));
    if (merged) mixed = net.Transpose(mixed, {0, 2, 1, 3});
    net.graph.MarkOutput(net.Reshape(mixed, {2, 24, 3, 7}));
    const Graph optimized = OptimizeGraph(net.graph);
    EXPECT_EQ(CountOf(optimized, "Attention"), 1);
    EXPECT_EQ(CountOf(optimized, "MatMul") + CountOf(optimized, "Softmax"), 0);
    EXPECT_EQ(CountOf(optimized, "Transpose"), 0);
    ExpectSame(net.graph, optimized);
  }
}

TEST(ProductPasses, SoftmaxThatOthersReadStays) {
  ProductNet net;
  const Id q = net.Input("q", {2, 5, 4}), k = net.Input("k", {2, 4, 7}), v = net.Input("v", {2, 7, 3});
  const Id weights = net.Softmax(net.Product(q, k));
  net.graph.MarkOutput(weights);
  net.graph.MarkOutput(net.Product(weights, v));
  const Graph optimized = OptimizeGraph(net.graph);
  EXPECT_EQ(CountOf(optimized, "Attention"), 0);
  EXPECT_EQ(CountOf(optimized, "MatMul"), 2);
  ExpectSame(net.graph, optimized);
}

TEST(ProductPasses, DenseLayersAreConvolutions) {
  for (const Shape& shape :
       {Shape{7}, Shape{1, 7}, Shape{5, 7}, Shape{2, 5, 7}, Shape{1, 5, 7}, Shape{2, 3, 4, 7}}) {
    SCOPED_TRACE(ShapeToString(shape));
    ProductNet net;
    const Id x = net.Input("x", shape);
    const Id hidden = net.Relu("relu", net.Dense("up", x, 11));
    net.graph.MarkOutput(net.Add("y", net.Dense("down", hidden, 7), x));
    const Graph optimized = OptimizeGraph(net.graph);
    EXPECT_EQ(CountOf(optimized, "Conv"), 2);
    EXPECT_EQ(CountOf(optimized, "Gemm") + CountOf(optimized, "Add") + CountOf(optimized, "Relu"), 0);
    // Nothing lies between the two.
    for (Id id = 0; id < optimized.size(); ++id) {
      if (optimized.node(id).name != "up") continue;
      EXPECT_EQ(optimized.node(optimized.Consumers(id).at(0)).op->Type(), "Conv");
    }
    ExpectSame(net.graph, optimized);
  }
}

TEST(ProductTask, SaysHowSidesLie) {
  const auto task = [](const MatMulParams& params, std::vector<Shape> inputs) {
    const std::optional<ConvWorkload> workload = ProductOf(MatMulOp(params), inputs);
    return workload ? WorkloadToString(*workload) : "none";
  };
  const Arrangement heads{{2, 11, 3, 16}, {0, 2, 1, 3}}, keys{{2, 11, 3, 16}, {0, 2, 3, 1}};
  EXPECT_EQ(task({}, {{2, 3, 5, 7}, {7, 9}}), "mb6m5n9k7");
  EXPECT_EQ(task({.a = heads, .b = keys}, {{2, 11, 48}, {2, 11, 48}}), "mb6m11n11k16tb1");
  EXPECT_EQ(task({.a = {{}, {1, 0}}}, {{7, 5}, {7, 9}}), "mb1m5n9k7ta1");
  EXPECT_EQ(task({}, {{7}, {2, 7, 9}}), "mb2m1n9k7");
  EXPECT_EQ(task({}, {{2, 5, 7}, {7}}), "mb2m5n1k7");
  EXPECT_EQ(task({}, {{3, 0}, {0, 5}}), "none");
}

TEST(ProductPasses, ProductsTakeWhatFollows) {
  ProductNet net;
  const Id a = net.Input("a", {2, 5, 6}), b = net.Input("b", {2, 9, 6});
  const Id product = net.Times(net.Product(net.Times(a, 2), net.Transpose(b, {0, 2, 1})), 0.25f);
  const Id row = net.graph.Add("", std::make_shared<ConstantOp>(RandomTensor({9}, 3)), {});
  net.graph.MarkOutput(net.Act("y", net.Add("", product, row), {ActivationKind::kSigmoid}));
  const Graph optimized = OptimizeGraph(net.graph);
  EXPECT_EQ(optimized.size(), 3u);
  EXPECT_EQ(CountOf(optimized, "MatMul"), 1);
  ExpectSame(net.graph, optimized);
}

TEST(ProductPasses, ColumnsOfTheResultAreNotMoved) {
  ProductNet net;
  const Id a = net.Input("a", {2, 5, 6}), b = net.Input("b", {2, 6, 9});
  net.graph.MarkOutput(net.Transpose(net.Product(a, b), {0, 2, 1}));
  const Graph optimized = OptimizeGraph(net.graph);
  ExpectSame(net.graph, optimized);
}

}  // namespace
}  // namespace tilesmith
