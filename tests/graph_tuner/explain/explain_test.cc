#include "graph_tuner/explain/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "graph_tuner/plan/price_plan.h"
#include "layouts/base/error.h"
#include "tests/graph_tuner/support/explain_sample.h"
#include "tests/graph_tuner/support/plan_enumerator.h"

namespace tilesmith {
namespace {

using Id = Graph::NodeId;

double SumOf(const std::vector<CostTerm>& terms) {
  double sum = 0;
  for (const CostTerm& term : terms) sum += term.seconds;
  return sum;
}

// The oracle is every plan there is, made and priced without any layout problem.
TEST(Explain, ForcedTotalsAreTheLeastOfAllPlansThatHaveTheChoice) {
  int networks = 0, fused = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ExplainSample sample(seed, 2 + static_cast<int>(seed % 5));
    const NetworkProblem problem = sample.Prepare();
    const SolvedNetwork network = SolveNetwork(problem);
    const BuiltProblem& built = network.built();
    if (Combinations(built) > 200) continue;
    ++networks;
    const std::vector<Id> nodes = PlannedNodes(sample.graph, network.best);
    std::map<std::tuple<Id, int, int>, double> least;
    PlanEnumerator(sample.graph, problem.candidates()).ForEach([&](Plan& plan) {
      PricePlan(sample.graph, sample.costs, plan);
      for (const Id node : nodes) {
        const std::optional<NodeChoice> choice = ChosenBy(sample.graph, built, plan, node);
        ASSERT_TRUE(choice.has_value()) << sample.graph.node(node).name;
        const auto [known, added] =
            least.try_emplace({node, choice->in, choice->out}, plan.predicted_seconds);
        if (!added) known->second = std::min(known->second, plan.predicted_seconds);
      }
    });
    size_t choices = 0;
    for (const Id node : nodes) {
      for (const ExplainedChoice& option : ExplainNode(network, node)) {
        SCOPED_TRACE(sample.graph.node(node).name);
        ++choices;
        const auto found = least.find({node, option.choice.in, option.choice.out});
        ASSERT_NE(found, least.end());
        EXPECT_NEAR(option.total_seconds, found->second, 1e-9 * found->second);
        fused += !option.schedule.fused_into.empty();
      }
    }
    EXPECT_EQ(choices, least.size());
  }
  EXPECT_GT(networks, 300);
  EXPECT_GT(fused, 100);
}

TEST(Explain, ForcedTotalsEqualExhaustiveSearchUnderTheSameRestriction) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ExplainSample sample(seed, 5);
    const NetworkProblem problem = sample.Prepare();
    const SolvedNetwork network = SolveNetwork(problem);
    const BuiltProblem& built = network.built();
    for (const Id node : PlannedNodes(sample.graph, network.best)) {
      for (const NodeChoice& choice : ChoicesOf(built, node)) {
        const Solution oracle =
            FindSolver("exhaustive").solve(WithFixed(built, {{node, choice}}), SolveLimits());
        ASSERT_TRUE(oracle.solved()) << oracle.refusal;
        EXPECT_EQ(ChosenBy(built, oracle.assignment, node), choice);
        EXPECT_NEAR(ExplainChoice(network, node, choice).total_seconds, oracle.cost, 1e-9 * oracle.cost);
      }
    }
  }
}

TEST(Explain, TermsAddUpToTheDifferenceOfTheTotals) {
  int inputs = 0, outputs = 0, others = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ExplainSample sample(seed, 7);
    const NetworkProblem problem = sample.Prepare();
    const SolvedNetwork network = SolveNetwork(problem);
    for (const Id node : PlannedNodes(sample.graph, network.best)) {
      const std::vector<ExplainedChoice> explained = ExplainNode(network, node);
      EXPECT_EQ(explained[0].choice, ChosenBy(network.built(), network.assignment, node));
      EXPECT_EQ(explained[0].total_seconds, network.best.predicted_seconds);
      for (const ExplainedChoice& option : explained) {
        EXPECT_NEAR(SumOf(option.terms), option.total_seconds - network.best.predicted_seconds,
                    1e-12 * network.best.predicted_seconds);
        ASSERT_FALSE(option.terms.empty());
        EXPECT_EQ(option.terms[0].kind, TermKind::kNode);
        EXPECT_EQ(option.terms[0].node, sample.graph.node(node).name);
        EXPECT_EQ(option.terms[0].seconds,
                  option.schedule.predicted_seconds - explained[0].schedule.predicted_seconds);
        for (const CostTerm& term : option.terms) {
          inputs += term.kind == TermKind::kInputTransform;
          outputs += term.kind == TermKind::kOutputTransform;
          others += term.kind == TermKind::kOtherNode;
          EXPECT_TRUE(term.kind == TermKind::kNode || term.seconds != 0);
        }
      }
    }
  }
  EXPECT_GT(inputs, 1000);
  EXPECT_GT(outputs, 1000);
  EXPECT_GT(others, 1000);
}

TEST(Explain, TheRunnerUpIsTheSecondOfAllChoices) {
  int with = 0, without = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ExplainSample sample(seed, 6);
    const NetworkProblem problem = sample.Prepare();
    const SolvedNetwork network = SolveNetwork(problem);
    for (const Id node : PlannedNodes(sample.graph, network.best)) {
      const std::vector<ExplainedChoice> explained = ExplainNode(network, node);
      const std::optional<ExplainedChoice> second = RunnerUp(network, node);
      ASSERT_EQ(second.has_value(), explained.size() > 1);
      ++(second ? with : without);
      if (!second) continue;
      EXPECT_NE(second->choice, explained[0].choice);
      EXPECT_NEAR(second->total_seconds, explained[1].total_seconds, 1e-9 * second->total_seconds);
    }
  }
  EXPECT_GT(with, 500);
  EXPECT_GT(without, 0);
}

TEST(Explain, APlanIsRecognisedInTheProblemItCameFrom) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ExplainSample sample(seed, 8);
    const NetworkProblem problem = sample.Prepare();
    const SolvedNetwork network = SolveNetwork(problem);
    const BuiltProblem& built = network.built();
    std::vector<FixedNode> fixed;
    for (const Id node : PlannedNodes(sample.graph, network.best)) {
      const NodeChoice choice = ChosenBy(built, network.assignment, node);
      EXPECT_EQ(ChosenBy(sample.graph, built, network.best, node), choice);
      fixed.push_back({node, choice});
    }
    EXPECT_NEAR(BestPlanWith(network, fixed).predicted_seconds, network.best.predicted_seconds,
                1e-9 * network.best.predicted_seconds);
  }
}

TEST(Explain, WhatTheProblemLacksIsNoChoiceOfIt) {
  Graph graph("g");
  graph.MarkOutput(AddConv(graph, "a", AddInput(graph, {1, 8, 4, 4}), 16));
  SyntheticCosts costs(1);
  const NetworkProblem problem(graph, SyntheticLog(graph, {8}, 1), costs, SyntheticOptions());
  const SolvedNetwork network = SolveNetwork(problem);
  Plan plan = network.best;
  EXPECT_TRUE(ChosenBy(graph, network.built(), plan, 1).has_value());
  plan.nodes[0].record->layouts = plan.nodes[0].layouts = {Layout::Nchw(), Layout::Blocked(8)};
  EXPECT_EQ(ChosenBy(graph, network.built(), plan, 1), std::nullopt);
}

// Prices that can be added up by hand: a transform takes 3 s, a relu 1 s.
class PlainCosts final : public CostSource {
 public:
  double TransformSeconds(const Shape& shape, const Layout& from, const Layout& to) override {
    return SameMemory(shape, from, to) ? 0 : 3;
  }
  double CopySeconds(const Shape&, const Layout&) override { return 2; }
  double OpSeconds(const OpUse&) override { return 1; }
  CrossingPrices PricesOfCrossing() override { return {}; }
};

TEST(Explain, SaysWhyTheSlowerConvIsChosen) {
  // b is faster in 16c, by less than the transform of what a writes; a has nothing but 8c.
  Graph graph("g");
  const Id a = AddConv(graph, "a", AddInput(graph, {1, 8, 4, 4}), 16), b = AddConv(graph, "b", a, 16, 3);
  graph.MarkOutput(b);
  const auto workload = [&](Id id) { return graph.As<ConvOp>(id)->workload(); };
  const std::vector<Record> log = {SyntheticRecord(workload(a), 1, 8, 10),
                                   SyntheticRecord(workload(b), 8, 1, 7),
                                   SyntheticRecord(workload(b), 16, 1, 5)};
  PlainCosts costs;
  const NetworkProblem problem(graph, log, costs, SyntheticOptions());
  const SolvedNetwork network = SolveNetwork(problem);
  EXPECT_EQ(network.best.predicted_seconds, 17);
  const std::vector<ExplainedChoice> explained = ExplainNode(network, b);
  ASSERT_EQ(explained.size(), 2u);
  EXPECT_EQ(explained[0].schedule.layouts, (LayoutPair{Layout::Blocked(8), Layout::Nchw()}));
  EXPECT_EQ(explained[1].schedule.layouts, (LayoutPair{Layout::Blocked(16), Layout::Nchw()}));
  EXPECT_EQ(explained[1].total_seconds, 18);
  ASSERT_EQ(explained[1].terms.size(), 2u);
  EXPECT_EQ(explained[1].terms[0].seconds, -2);
  EXPECT_EQ(explained[1].terms[1].kind, TermKind::kInputTransform);
  EXPECT_EQ(explained[1].terms[1].node, "a");
  EXPECT_EQ(explained[1].terms[1].first, std::nullopt);
  EXPECT_EQ(explained[1].terms[1].second, (LayoutPair{Layout::Blocked(8), Layout::Blocked(16)}));
  EXPECT_EQ(explained[1].terms[1].seconds, 3);
  // The same of a whole plan, with no node in the middle.
  const Plan other = BestPlanWith(network, {{b, explained[1].choice}});
  for (const CostTerm& term : Differences(graph, network.best, other, std::nullopt))
    EXPECT_TRUE(term.kind == TermKind::kOtherNode || term.kind == TermKind::kOtherTransform);
}

TEST(Explain, RefusesWhenTheSolverDoes) {
  ExplainSample sample(3, 8);
  GraphTuneOptions options = SyntheticOptions();
  options.solver = "dp";
  options.limits.table_entries = 0;
  EXPECT_THROW(SolveNetwork(sample.Prepare(options)), Error);
}

}  // namespace
}  // namespace tilesmith
