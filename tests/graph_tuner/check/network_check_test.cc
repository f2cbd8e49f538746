#include "graph_tuner/check/network_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph_tuner/check/compare.h"
#include "graph_tuner/executor/compiled_network.h"
#include "graph_tuner/executor/heuristic_plan.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/pool/pool.h"
#include "tests/graph_tuner/support/executor_testing.h"
#include "tests/graph_tuner/support/region_plans.h"

namespace tilesmith {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// A kernel, and behind its last stage something that it should not do.
class FaultyKernel : public Kernel {
 public:
  using Fault = std::function<void(const KernelArgs&)>;
  FaultyKernel(std::unique_ptr<Kernel> kernel, Fault fault)
      : kernel_(std::move(kernel)), fault_(std::move(fault)) {}
  int Stages() const override { return kernel_->Stages() + 1; }
  int64_t Tasks(int stage) const override { return stage < kernel_->Stages() ? kernel_->Tasks(stage) : 1; }
  void Run(const KernelArgs& args, int stage, TaskRange range) const override {
    stage < kernel_->Stages() ? kernel_->Run(args, stage, range) : fault_(args);
  }
  int64_t ScratchBytes(int threads) const override { return kernel_->ScratchBytes(threads); }

 private:
  std::unique_ptr<Kernel> kernel_;
  const Fault fault_;
};

// A network, a plan for it, and what the check says of an executor in which one step has a fault.
struct Checked {
  Graph graph;
  Plan plan;
  std::vector<Tensor> inputs;
  Target cpu = TestCpu();
  int threads = 2;

  Checked(Graph g, Plan p) : graph(std::move(g)), plan(std::move(p)), inputs(RandomInputs(graph, 1)) {}

  NetworkCheck Check(const std::string& faulty_step = "", const FaultyKernel::Fault& fault = {}) const {
    const auto network =
        std::const_pointer_cast<CompiledNetwork>(CompileNetwork(graph, plan, OpenDevice(cpu, threads)));
    for (size_t i = 0; i < network->steps.size(); ++i) {
      if (network->steps[i].name != faulty_step) continue;
      network->kernels[i] = std::make_unique<FaultyKernel>(std::move(network->kernels[i]), fault);
    }
    Executor executor(network);
    return CheckNetwork(executor, graph, plan, cpu, inputs);
  }
};

FaultyKernel::Fault AddTo(int64_t element, float what) {
  return [element, what](const KernelArgs& args) { args.output.image<float>(0)[element] += what; };
}

Graph::NodeId AddLinearConv(Graph& graph, const std::string& name, Graph::NodeId input, Tensor weights) {
  const Shape in = graph.node(input).shape;
  ConvWorkload w;
  w.mb = in[0], w.ic = in[1], w.ih = w.oh = in[2], w.iw = w.ow = in[3];
  w.oc = weights.shape()[0], w.kh = w.kw = 3, w.ph = w.pw = 1;
  return graph.Add(name, std::make_shared<ConvOp>(w, std::make_shared<Tensor>(std::move(weights)), nullptr),
                   {input});
}

// 1e5 * (conv(x, weights) + conv(x, small - weights)), which is 1e5 * conv(x, small) but for the rounding of
// what cancels.
Graph Amplifier() {
  constexpr float kSmall = 1e-5F;
  Graph graph("amplifier");
  const auto x = graph.Add("x", std::make_shared<InputOp>(Shape{1, 16, 12, 12}), {});
  Tensor weights({16, 16, 3, 3}), negated({16, 16, 3, 3});
  TestRandom random(3);
  for (int64_t i = 0; i < weights.size(); ++i) {
    weights.floats()[i] = random.Uniform();
    negated.floats()[i] = random.Uniform(-kSmall, kSmall) - weights.floats()[i];
  }
  const auto one = AddLinearConv(graph, "one", x, std::move(weights));
  const auto other = AddLinearConv(graph, "other", x, std::move(negated));
  const auto sum = graph.Add("sum", std::make_shared<BinaryOp>(BinaryKind::kAdd), {one, other});
  graph.MarkOutput(graph.Add(
      "scaled", std::make_shared<ScaleShiftOp>(std::vector<float>(16, 1e5F), std::vector<float>(16, 0)),
      {sum}));
  return graph;
}

// x -> conv a -> conv b, and a + b.
Graph Ordinary() {
  Graph graph("ordinary");
  const auto x = graph.Add("x", std::make_shared<InputOp>(Shape{1, 9, 10, 10}), {});
  const auto a = AddFilledConv(graph, "a", {x}, 24, 3);
  const auto b = AddFilledConv(graph, "b", {a}, 24, 3);
  graph.MarkOutput(graph.Add("sum", std::make_shared<BinaryOp>(BinaryKind::kAdd), {a, b}));
  return graph;
}

std::vector<Checked> BothPlans(const Graph& graph) {
  const Target cpu = TestCpu();
  return {{graph, HeuristicPlan(graph, cpu, 2)}, {graph, UniformPlan(graph, cpu, 8)}};
}

TEST(CompareTensors, ThoseOf16BitsAreComparedAsNumbers) {
  Tensor a({3}, Layout::Nchw(DataType::kF16)), b = a;
  a.data<F16>()[0] = F16(8.0f), a.data<F16>()[1] = F16(2.0f);
  b.data<F16>()[0] = F16(8.0f), b.data<F16>()[1] = F16(1.0f);
  EXPECT_EQ(CompareTensors(a, b).relative, 1.0 / 8);
  a.data<F16>()[2] = F16(kNan);
  EXPECT_EQ(CompareTensors(a, b).one_sided, 2);
}

TEST(NetworkCheck, OrdinaryNetworksAreHeldToTheFloor) {
  for (const Checked& checked : BothPlans(Ordinary())) {
    const NetworkCheck check = checked.Check();
    EXPECT_EQ(check.wrong, "");
    EXPECT_EQ(check.allowed, kAllowedDifference);
    EXPECT_LE(check.difference, kAllowedDifference);
    EXPECT_GE(check.steps, 3);
    EXPECT_GT(check.worst_step_difference, 0);
    EXPECT_LE(check.worst_step_difference, check.worst_step_allowed);
    EXPECT_EQ(check.not_numbers, 0);
    EXPECT_THAT(DescribeAllowed(check), HasSubstr("as in any network"));
  }
}

TEST(NetworkCheck, AmplifiedRoundingIsNoError) {
  for (const Checked& checked : BothPlans(Amplifier())) {
    const NetworkCheck check = checked.Check();
    EXPECT_EQ(check.wrong, "");
    EXPECT_GT(check.difference, kAllowedDifference) << "the network does not amplify enough";
    EXPECT_GT(check.allowed, kAllowedDifference);
    EXPECT_EQ(check.allowed, AllowedDifference(check.rounding));
    EXPECT_THAT(DescribeAllowed(check), HasSubstr("that the network makes of its kernels' rounding"));
  }
}

TEST(NetworkCheck, AWrongStepIsFoundWhereTheNetworkAmplifiesMore) {
  for (const Checked& checked : BothPlans(Amplifier())) {
    // Each output of the conv is some 5, its rounding bound some 1e-3.
    const NetworkCheck check = checked.Check("other", AddTo(5, 3e-3F));
    EXPECT_LE(check.difference, check.allowed) << "the outputs alone would show it";
    EXPECT_THAT(check.wrong, StartsWith("step \"other\" ("));
    EXPECT_THAT(check.wrong, HasSubstr("should be"));
    EXPECT_EQ(check.worst_step, "other");
  }
}

TEST(NetworkCheck, TheFirstWrongStepIsNamed) {
  for (const Checked& checked : BothPlans(Ordinary())) {
    EXPECT_THAT(checked.Check("a", AddTo(0, 1)).wrong, StartsWith("step \"a\" ("));
    EXPECT_THAT(checked.Check("b", AddTo(0, 1)).wrong, StartsWith("step \"b\" ("));
    EXPECT_THAT(checked.Check("sum", AddTo(0, 1)).wrong, StartsWith("step \"sum\" (Add)"));
  }
}

TEST(NetworkCheck, MemoryThatIsTakenTooEarlyShows) {
  Checked checked(Ordinary(), UniformPlan(Ordinary(), TestCpu(), 8));
  const NetworkCheck check = checked.Check(
      "b", [](const KernelArgs& args) { const_cast<float*>(args.inputs[0].image<float>(0))[3] = 7; });
  EXPECT_THAT(check.wrong, StartsWith("step \"sum\" (Add)"));
  EXPECT_THAT(check.wrong, HasSubstr("its input \"a\" was written over before it ran: element"));
}

TEST(NetworkCheck, PaddingMustBeZero) {
  Checked checked(Ordinary(), UniformPlan(Ordinary(), TestCpu(), 16));  // 24 channels
  const int64_t last = BatchStride({1, 24, 10, 10}, Layout::Blocked(16)) - 1;
  EXPECT_THAT(checked.Check("b", AddTo(last, 1)).wrong, HasSubstr("its padding is not zero"));
}

TEST(NetworkCheck, NanAndInfinityEqualThemselves) {
  for (Checked& checked : BothPlans(Ordinary())) {
    checked.inputs[0].floats()[345] = kNan;
    const NetworkCheck with_nan = checked.Check();
    EXPECT_EQ(with_nan.wrong, "");
    // Every channel of the 5 x 5 pixels that read it, fewer at the edges.
    EXPECT_GE(with_nan.not_numbers, 24 * 9);
    EXPECT_LE(with_nan.not_numbers, 24 * 25);
    checked.inputs[0].floats()[345] = kInf;
    const NetworkCheck with_infinity = checked.Check();
    EXPECT_EQ(with_infinity.wrong, "");
    EXPECT_GT(with_infinity.not_numbers, 0);
  }
}

// The check of a chain of three convolutions in one region, whose threads do what `change` leaves of that.
NetworkCheck CheckOfRegion(const std::function<void(RegionSchedule&)>& change) {
  Graph graph("chain");
  const auto x = graph.Add("x", std::make_shared<InputOp>(Shape{1, 8, 20, 12}), {});
  const auto a = AddFilledConv(graph, "a", {x}, 16, 3);
  const auto b = AddFilledConv(graph, "b", {a}, 24);
  graph.MarkOutput(AddFilledConv(graph, "c", {b}, 16, 3));
  const Target cpu = TestCpu();
  Plan plan = FewRowsPlan(graph, cpu, 2);
  AddRegion(plan, {"a", "b", "c"}, 2);
  const auto network =
      std::const_pointer_cast<CompiledNetwork>(CompileNetwork(graph, plan, OpenDevice(cpu, 2)));
  change(network->regions.at(0).schedule);
  Executor executor(network);
  return CheckNetwork(executor, graph, plan, cpu, RandomInputs(graph, 1));
}

TEST(NetworkCheck, RegionsGiveWhatTheirLayersGive) {
  const NetworkCheck check = CheckOfRegion([](RegionSchedule&) {});
  EXPECT_EQ(check.wrong, "");
  EXPECT_EQ(check.steps, 5);
  EXPECT_LE(check.difference, kAllowedDifference);
}

TEST(NetworkCheck, ARegionThatLeavesRowsOutIsNamed) {
  const NetworkCheck check = CheckOfRegion([](RegionSchedule& schedule) {
    ASSERT_EQ(schedule.actions.size(), 2u);
    schedule.actions[1].pop_back();
  });
  EXPECT_THAT(check.wrong, StartsWith("output \"c\": element "));
  EXPECT_THAT(check.wrong, HasSubstr(" elements are not the same bits); region 1 ends with \"c\""));
}

TEST(NetworkCheck, NanOnOneSideIsNamed) {
  for (const Checked& checked : BothPlans(Ordinary())) {
    const auto to_nan = [](const KernelArgs& args) { args.output.image<float>(0)[0] = kNan; };
    const std::string wrong = checked.Check("sum", to_nan).wrong;
    EXPECT_THAT(wrong, StartsWith("step \"sum\""));
    EXPECT_THAT(wrong, HasSubstr("element 0 (0, 0, 0, 0) is nan, should be"));
  }
  Checked checked(Ordinary(), UniformPlan(Ordinary(), TestCpu(), 8));
  checked.inputs[0].floats()[0] = kNan;
  const auto from_nan = [](const KernelArgs& args) { args.output.image<float>(0)[0] = 0; };
  EXPECT_THAT(checked.Check("a", from_nan).wrong, HasSubstr("element 0 (0, 0, 0, 0) is 0, should be nan"));
}

TEST(CompareTensors, NumbersAndOthers) {
  const auto tensor = [](std::initializer_list<float> values) {
    Tensor t({static_cast<int64_t>(values.size())});
    std::ranges::copy(values, t.floats());
    return t;
  };
  const Tensor expected = tensor({1, kNan, kInf, -4});
  const TensorDifference same = CompareTensors(expected, expected);
  EXPECT_EQ(same.relative, 0);
  EXPECT_EQ(same.one_sided, -1);
  EXPECT_EQ(same.not_numbers, 2);
  EXPECT_EQ(CompareTensors(tensor({2, kNan, kInf, -4}), expected).relative, 0.25);
  EXPECT_EQ(CompareTensors(tensor({1, 1, kInf, -4}), expected).one_sided, 1);
  EXPECT_EQ(CompareTensors(tensor({1, kNan, -kInf, -4}), expected).one_sided, 2);
  EXPECT_EQ(CompareTensors(tensor({1, kNan, kInf, kNan}), expected).one_sided, 3);
  EXPECT_EQ(DescribeElement({2, 3, 4}, 17), "element 17 (1, 1, 1)");
}

}  // namespace
}  // namespace tilesmith
