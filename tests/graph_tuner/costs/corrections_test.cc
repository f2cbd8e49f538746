#include "graph_tuner/costs/corrections.h"

#include <gtest/gtest.h>

#include "graph_tuner/costs/layout_forms.h"
#include "graph_tuner/plan/price_plan.h"
#include "graph_tuner/problem/build_problem.h"
#include "graph_tuner/solvers/solver.h"
#include "tests/graph_tuner/support/plan_enumerator.h"
#include "tests/graph_tuner/support/synthetic.h"

namespace tilesmith {
namespace {

ConvWorkload Workload() {
  Graph graph("net");
  AddConv(graph, "a", AddInput(graph, {1, 8, 4, 4}), 16);
  return graph.As<ConvOp>(1)->workload();
}

TEST(Corrections, WithoutAnyEverythingCostsWhatItDoesAlone) {
  const Corrections none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.ConvSeconds("a", SyntheticRecord(Workload(), 8, 8, 3)), 3);
  EXPECT_EQ(none.OpSeconds("r", Layout::Nchw(), 4), 4);
  EXPECT_EQ(none.ConversionSeconds({"a", nullptr, {1, 8, 4, 4}}, Layout::Nchw(), Layout::Nhwc(), 5), 5);
}

TEST(Corrections, OfAConvAreByOptionThenByNode) {
  const Record plain = SyntheticRecord(Workload(), 8, 8, 2), other = SyntheticRecord(Workload(), 8, 16, 3);
  Corrections corrections;
  corrections.LearnConv("a", plain, 5);
  EXPECT_FALSE(corrections.empty());
  EXPECT_EQ(corrections.ConvSeconds("a", plain), 5);
  EXPECT_DOUBLE_EQ(corrections.ConvSeconds("a", other), 3 * 5 / 2.0);
  EXPECT_EQ(corrections.ConvSeconds("b", plain), 2);  // the same workload elsewhere
  corrections.LearnConv("a", other, 3);
  EXPECT_EQ(corrections.ConvSeconds("a", other), 3);
  const Record third = SyntheticRecord(Workload(), 16, 8, 10);
  EXPECT_DOUBLE_EQ(corrections.ConvSeconds("a", third), 10 * (5 + 3) / (2 + 3.0));
  corrections.LearnConv("a", plain, 2);  // the last measurement counts
  EXPECT_DOUBLE_EQ(corrections.ConvSeconds("a", third), 10 * (2 + 3) / (2 + 3.0));
  // The same config of a fused workload is another option.
  Record fused = plain;
  fused.workload.before = {Workload()};
  fused.seconds = 6;
  EXPECT_DOUBLE_EQ(corrections.ConvSeconds("a", fused), 6);
  corrections.LearnConv("a", fused, 7);
  EXPECT_EQ(corrections.ConvSeconds("a", plain), 2);
  EXPECT_EQ(corrections.ConvSeconds("a", fused), 7);
}

TEST(Corrections, CanBeListedLearnedAgainAndScaled) {
  const Record record = SyntheticRecord(Workload(), 8, 8, 2);
  const Node a{"a", nullptr, {1, 16, 4, 4}};
  Corrections corrections;
  corrections.LearnConv("a", record, 5);
  corrections.LearnOp("r", Layout::Blocked(8), 2, 3);
  corrections.LearnConversion("a", ConversionOf(a.shape, Layout::Nchw(), Layout::Blocked(8)), 1, 4);
  Corrections again;
  for (const Correction& correction : corrections.All()) again.Learn(correction);
  ASSERT_EQ(again.All().size(), 3u);
  const std::vector<std::pair<Corrections, double>> both = {{again, 1}, {corrections.Scaled(3), 3}};
  for (const auto& [same, factor] : both) {
    EXPECT_EQ(same.ConvSeconds("a", record), 5 * factor);
    EXPECT_EQ(same.OpSeconds("r", Layout::Blocked(8), 2), 3 * factor);
    EXPECT_EQ(same.OpSeconds("r", Layout::Nchw(), 4), 6 * factor);
    EXPECT_EQ(same.ConversionSeconds(a, Layout::Nchw(), Layout::Blocked(8), 1), 4 * factor);
  }
}

TEST(Corrections, OfOpsAndConversionsAreApart) {
  Corrections corrections;
  corrections.LearnOp("r", Layout::Blocked(8), 2, 3);
  EXPECT_EQ(corrections.OpSeconds("r", Layout::Blocked(8), 2), 3);
  EXPECT_DOUBLE_EQ(corrections.OpSeconds("r", Layout::Nchw(), 4), 6);
  const Node r{"r", nullptr, {1, 16, 4, 4}};
  EXPECT_EQ(corrections.ConversionSeconds(r, Layout::Blocked(8), Layout::Nchw(), 5), 5);
  corrections.LearnConversion("r", ConversionOf(r.shape, Layout::Blocked(8), Layout::Nhwc()), 1, 4);
  // NHWC of 16 channels is NCHW16c.
  EXPECT_EQ(corrections.ConversionSeconds(r, Layout::Blocked(8), Layout::Blocked(16), 1), 4);
  EXPECT_DOUBLE_EQ(corrections.ConversionSeconds(r, Layout::Blocked(8), Layout::Nchw(), 5), 20);
  EXPECT_EQ(corrections.OpSeconds("r", Layout::Blocked(8), 2), 3);
}

TEST(Corrections, WithoutAStandAloneCostThereIsNoRatio) {
  Record unmeasured = SyntheticRecord(Workload(), 8, 8, 0);
  Corrections corrections;
  corrections.LearnConv("a", unmeasured, 5);
  EXPECT_EQ(corrections.ConvSeconds("a", unmeasured), 5);
  EXPECT_EQ(corrections.ConvSeconds("a", SyntheticRecord(Workload(), 8, 16, 3)), 3);
}

TEST(ConversionOf, CopiesAreToldBySameMemory) {
  const LayoutPair copy = ConversionOf({1, 16, 4, 4}, Layout::Nhwc(), Layout::Blocked(16));
  EXPECT_EQ(copy, (LayoutPair{Layout::Blocked(16), Layout::Blocked(16)}));
  const LayoutPair transform = ConversionOf({1, 32, 4, 4}, Layout::Nhwc(), Layout::Blocked(16));
  EXPECT_EQ(transform, (LayoutPair{Layout::Blocked(32), Layout::Blocked(16)}));
}

// Learns something random of every entry of a plan.
void LearnSomething(const Graph& graph, const Plan& plan, TestRandom& random, Corrections& corrections) {
  for (const NodePlan& node : plan.nodes) {
    const double seconds = node.predicted_seconds * random.Uniform(0.3, 3);
    if (random.Integer(0, 2) == 0) continue;
    if (node.record)
      corrections.LearnConv(node.node, *node.record, seconds);
    else
      corrections.LearnOp(node.node, node.layouts.in, node.predicted_seconds, seconds);
  }
  for (const TransformPlan& transform : plan.transforms) {
    const Shape& shape = graph.node(*graph.Find(transform.tensor)).shape;
    if (random.Integer(0, 2) == 0) continue;
    corrections.LearnConversion(transform.tensor, ConversionOf(shape, transform.from, transform.to),
                                transform.predicted_seconds,
                                transform.predicted_seconds * random.Uniform(0.3, 3));
  }
}

// The layout problem and the evaluator charge the same corrected costs: the solution is the cheapest of all
// plans.
TEST(Corrections, TheProblemAndThePricesAgree) {
  int compared = 0, changed = 0;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestRandom random(seed);
    const Graph graph = RandomNetwork(seed, 3 + static_cast<int>(seed % 3));
    const Candidates candidates = FindCandidates(graph, SyntheticLog(graph, {1, 8}, seed), SyntheticCpu(), 2);
    SyntheticCosts costs(seed);
    std::vector<Plan> plans;
    PlanEnumerator(graph, candidates).ForEach([&](Plan& plan) { plans.push_back(plan); });
    if (plans.size() > 3000) continue;
    Corrections corrections;
    for (int i = 0; i < 3; ++i) {
      Plan plan = random.Pick(plans);
      PricePlan(graph, costs, plan);
      LearnSomething(graph, plan, random, corrections);
    }
    double best = kForbidden;
    for (Plan& plan : plans) {
      PricePlan(graph, costs, plan, corrections);
      best = std::min(best, plan.predicted_seconds);
    }
    const TolerantLayouts layouts = LayoutsOf(graph, candidates);
    Crossings crossings(graph, costs);
    const BuiltProblem built = BuildProblem(DealAll(candidates, crossings), layouts, crossings, corrections);
    const Solution solution = FindSolver("dp").solve(built.problem, {});
    ASSERT_TRUE(solution.solved());
    EXPECT_NEAR(solution.cost, best, 1e-9 * best);
    const BuiltProblem plain = BuildProblem(DealAll(candidates, crossings), layouts, crossings);
    changed += FindSolver("dp").solve(plain.problem, {}).assignment != solution.assignment;
    ++compared;
  }
  EXPECT_GT(compared, 60);
  EXPECT_GT(changed, 20);
}

}  // namespace
}  // namespace tilesmith
