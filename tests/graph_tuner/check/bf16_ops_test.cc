// What stands between convolutions, in bf16: gates, activations, sums, functions and what moves pixels. Plans
// that have it so pass the check, round-trip, and convert nothing in between.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "graph_tuner/check/network_check.h"
#include "graph_tuner/check/rounding_bounds.h"
#include "graph_tuner/executor/end_tensors.h"
#include "graph_tuner/plan/plan_file.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/functions.h"
#include "ops/movement/indexing.h"
#include "ops/resize/resize.h"
#include "tests/graph_tuner/support/bf16_networks.h"
#include "tests/graph_tuner/support/executor_testing.h"
#include "tests/support/temporary_files.h"

namespace tilesmith::bf16_ops {
namespace {

using NodeId = Graph::NodeId;

NodeId AddActivation(Graph& graph, const std::string& name, ActivationKind kind, NodeId input) {
  return graph.Add(name, std::make_shared<ActivationOp>(Activation{kind}), {input});
}
NodeId AddPair(Graph& graph, const std::string& name, BinaryKind kind, NodeId a, NodeId b) {
  return graph.Add(name, std::make_shared<BinaryOp>(kind), {a, b});
}

// A gate of squeeze-and-excitation on `input`, of 40 channels.
NodeId AddGate(Graph& graph, const std::string& name, NodeId input) {
  const NodeId mean = graph.Add(name + ".mean", std::make_shared<GlobalPoolOp>(PoolKind::kAverage), {input});
  const NodeId less = AddRandomConv(graph, name + ".less", "mb2ic40ih1oc8oh1kh1+bias", {mean});
  const NodeId silu = AddActivation(graph, name + ".silu", ActivationKind::kSilu, less);
  const NodeId more = AddRandomConv(graph, name + ".more", "mb2ic8ih1oc40oh1kh1+bias", {silu});
  const NodeId gate = AddActivation(graph, name + ".gate", ActivationKind::kSigmoid, more);
  return AddPair(graph, name + ".scaled", BinaryKind::kMul, input, gate);
}

ResizeParams Twice(const Shape& shape) {
  ResizeParams params;
  params.input = shape, params.output = {shape[0], shape[1], 2 * shape[2], 2 * shape[3]};
  params.scales = {1, 1, 2, 2};
  return params;
}

// 40 channels are no whole number of blocks of 16.
Graph MakeNetwork() {
  Graph graph("gated");
  const NodeId image = AddInput(graph, {2, 16, 12, 12});
  const NodeId a = AddRandomConv(graph, "a", "mb2ic16ih12oc40oh6kh3sh2ph1+bias", {image});
  const NodeId silu = AddActivation(graph, "silu", ActivationKind::kSilu, a);
  const NodeId b = AddRandomConv(graph, "b", "mb2ic40ih6oc40oh6kh1+bias", {AddGate(graph, "se", silu)});
  const NodeId sum = AddPair(graph, "sum", BinaryKind::kAdd, b, silu);
  const NodeId norm = graph.Add("norm",
                                std::make_shared<ScaleShiftOp>(std::vector(40, 0.7f), std::vector(40, 0.2f),
                                                               Activation{ActivationKind::kRelu}),
                                {sum});
  const NodeId c = AddRandomConv(graph, "c", "mb2ic40ih6oc40oh6kh3ph1+bias", {norm});
  const NodeId gelu = graph.Add("gelu", std::make_shared<FunctionOp>(Function{FunctionKind::kGelu}), {c});
  const NodeId rest = AddPair(graph, "rest", BinaryKind::kSub, gelu, sum);
  const NodeId half =
      graph.Add("half", std::make_shared<SliceOp>(std::vector<SliceRange>{{1, 0, 16, 1}}), {rest});
  const NodeId large = graph.Add("large", std::make_shared<ResizeOp>(Twice({2, 16, 6, 6})), {half});
  graph.MarkOutput(AddRandomConv(graph, "d", "mb2ic16ih12oc32oh12kh1+bias", {large}));
  return graph;
}

constexpr const char* kOps[] = {"silu", "se.mean", "se.silu", "se.gate", "se.scaled", "sum",
                                "norm", "gelu",    "rest",    "half",    "large"};

// A second for each byte that is moved.
class ByteCosts final : public CostSource {
 public:
  double TransformSeconds(const Shape& shape, const Layout& from, const Layout& to) override {
    if (from.type() == to.type() && SameMemory(shape, from, to)) return 0;
    return Bytes(shape, from) + Bytes(shape, to);
  }
  double CopySeconds(const Shape& shape, const Layout& layout) override { return 2 * Bytes(shape, layout); }
  double OpSeconds(const OpUse& use) override {
    double bytes = Bytes(use.output, use.layout);
    for (const Shape& input : use.inputs) bytes += Bytes(input, use.layout);
    return bytes;
  }
  CrossingPrices PricesOfCrossing() override { return {}; }

 private:
  static double Bytes(const Shape& shape, const Layout& layout) {
    return 1e-9 * static_cast<double>(PaddedBytes(shape, layout));
  }
};

class Bf16Ops : public testing::Test {
 protected:
  void SetUp() override {
    if (DetectCpu().isa == Isa::kPortable) GTEST_SKIP() << "needs AVX2";
    options_ = SyntheticOptions();
    options_.cpu = DetectCpu();
    options_.precision = Precision::kBf16;
    log_ = LogOfBothTypes(graph_, options_.cpu);
  }

  Plan Tune(CostSource& costs) { return GraphTune(NetworkProblem(graph_, log_, costs, options_)).plan; }

  void ExpectRuns(const Plan& planned) {
    WritePlan(folder_.File("plan.jsonl"), planned);
    const Plan plan = ReadPlan(folder_.File("plan.jsonl"), nullptr);
    EXPECT_TRUE(SameSchedules(plan, planned));
    CheckPlan(plan, graph_, options_.cpu, 2);
    Executor executor(graph_, plan, OpenDevice(options_.cpu, 2));
    const NetworkCheck check = CheckNetwork(executor, graph_, plan, options_.cpu, RandomInputs(graph_, 3));
    EXPECT_EQ(check.wrong, "");
  }

  static std::set<std::string> InBf16(const Plan& plan) {
    std::set<std::string> typed;
    for (const NodePlan& node : plan.nodes)
      if (!node.record && node.layouts.out.type() == DataType::kBf16) typed.insert(node.node);
    return typed;
  }

  const Graph graph_ = MakeNetwork();
  const TemporaryDirectory folder_;
  GraphTuneOptions options_;
  std::vector<Record> log_;
};

TEST_F(Bf16Ops, PlansPassTheCheckAndRoundTrip) {
  std::set<std::string> typed;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    options_.precision = seed % 3 == 0 ? Precision::kMixed : Precision::kBf16;
    SyntheticCosts costs(seed);
    const Plan plan = Tune(costs);
    ExpectRuns(plan);
    typed.merge(InBf16(plan));
  }
  EXPECT_THAT(typed, testing::IsSupersetOf(kOps));
}

TEST_F(Bf16Ops, NothingIsConvertedBetweenConvolutions) {
  ByteCosts costs;
  const Plan plan = Tune(costs);
  EXPECT_THAT(InBf16(plan), testing::UnorderedElementsAreArray(kOps));
  for (const TransformPlan& transform : plan.transforms) {
    if (transform.tensor == "input" || transform.tensor == "d") continue;
    EXPECT_EQ(transform.from.type(), transform.to.type()) << transform.tensor;
  }
  ExpectRuns(plan);
  options_.precision = Precision::kF32;
  EXPECT_THAT(InBf16(Tune(costs)), testing::IsEmpty());
}

// Where inputs cancel out, or a function is steep, their rounding is most of the error.
TEST(Bf16Bounds, CountTheRoundingOfInputs) {
  const auto bounds_of = [](const Op& op, const std::vector<float>& numbers) {
    std::vector<Tensor> inputs;
    std::vector<const Tensor*> pointers;
    for (const float number : numbers) inputs.emplace_back(Shape{1, 1, 1, 1}).floats()[0] = number;
    for (const Tensor& input : inputs) pointers.push_back(&input);
    return OpRoundingBound(op, pointers, op.Reference(pointers), DataType::kBf16).floats()[0];
  };
  // 1.003 and 1.001 are stored as 1, 1.006 as 1.0078125.
  EXPECT_NEAR(bounds_of(BinaryOp(BinaryKind::kSub), {1.003f, 1.001f}), 0.002, 1e-6);
  EXPECT_NEAR(bounds_of(BinaryOp(BinaryKind::kSub), {1.006f, 1.001f}), 0.0078125 - 0.005 + 0.0078125 / 256,
              1e-5);
  EXPECT_NEAR(bounds_of(FunctionOp({FunctionKind::kSin}), {1001.5f}),
              std::abs(std::sin(1000.0) - std::sin(1001.5)), 0.01);
  // What bf16 holds is only rounded once more.
  EXPECT_NEAR(bounds_of(BinaryOp(BinaryKind::kMul), {1.5f, 1.25f}), 1.875 / 256, 1e-5);
}

}  // namespace
}  // namespace tilesmith::bf16_ops
