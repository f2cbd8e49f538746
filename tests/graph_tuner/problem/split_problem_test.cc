// The layout problem where what crosses from thread to thread has a price.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "graph_tuner/explain/explain.h"
#include "graph_tuner/plan/price_plan.h"
#include "graph_tuner/problem/network_problem.h"
#include "ops/networks/networks.h"
#include "ops/passes/passes.h"
#include "tests/graph_tuner/support/explain_sample.h"
#include "tests/graph_tuner/support/plan_enumerator.h"
#include "tests/graph_tuner/support/synthetic.h"
#include "tests/graph_tuner/support/synthetic_fusion.h"

namespace tilesmith {
namespace {

// From prices that hardly matter to prices that nothing else matters beside.
double PriceOf(uint64_t seed) { return 1e-8 * static_cast<double>(1 << (seed % 5 * 3)); }

// Fused candidates by a template that says where its tasks lie.
Candidates PlacedCandidates(const Graph& graph, uint64_t seed) {
  const std::vector<int64_t> blocks = seed % 3 ? std::vector<int64_t>{0, 8} : std::vector<int64_t>{8, 16};
  Candidates candidates = FindCandidates(graph, SyntheticLog(graph, blocks, seed), SyntheticCpu(), 2);
  if (seed % 2) AddFusedCandidates(graph, blocks, seed, candidates);
  std::erase_if(candidates, [](const auto& entry) { return entry.second.empty(); });
  for (auto& [workload, records] : candidates)
    for (Record& record : records) record.template_name = "portable";
  return candidates;
}

TEST(SplitProblem, DpEqualsExhaustiveSearchAndAllPlansThereAre) {
  int brute_forced = 0, by_rows = 0, by_channels = 0, fused = 0, concats = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = RandomNetwork(seed, 2 + static_cast<int>(seed % 6));
    SyntheticCosts costs(seed);
    costs.seconds_per_crossed_byte = PriceOf(seed);
    GraphTuneOptions options = SyntheticOptions();
    options.threads = seed % 7 == 0 ? 3 : 2;
    const std::vector<Layout> ends = {Layout::Nchw(), Layout::Nhwc()};
    options.ends = {ends[seed % 2], ends[seed / 2 % 2]};
    const Candidates candidates = PlacedCandidates(graph, seed);
    const NetworkProblem problem(graph, candidates, costs, options);
    const SolvedNetwork network = SolveNetwork(problem);
    const Solution exhaustive = FindSolver("exhaustive").solve(network.built().problem, {});
    ASSERT_TRUE(exhaustive.solved());
    const double dp = network.best.predicted_seconds;
    EXPECT_NEAR(dp, exhaustive.cost, 1e-9 * dp);
    for (const NodePlan& node : network.best.nodes) {
      by_rows += node.split == Split::kRows;
      by_channels += node.split == Split::kChannels;
      fused += !node.fused_into.empty();
      concats += node.op_type == "Concat" && node.split != Split::kEven;
    }
    if (Combinations(network.built()) > 3000) continue;
    ++brute_forced;
    Crossings crossings(graph, costs, options.cpu, options.threads);
    double least = kForbidden;
    PlanEnumerator(graph, candidates, options, &crossings).ForEach([&](Plan& plan) {
      PricePlan(graph, costs, plan);
      least = std::min(least, plan.predicted_seconds);
    });
    EXPECT_NEAR(dp, least, 1e-9 * dp);
  }
  EXPECT_GT(brute_forced, 60);
  EXPECT_GT(by_rows, 100);
  EXPECT_GT(by_channels, 4);
  EXPECT_GT(fused, 20);
  EXPECT_GT(concats, 20);
}

// As behind a network's global pooling, where layouts of different names are one form.
TEST(SplitProblem, LayoutsThatAreOneFormOfAPixelCostTheSame) {
  Graph graph("pixels");
  Graph::NodeId last = AddInput(graph, {1, 24, 1, 1});
  for (const int channels : {24, 72, 24, 40})
    last = AddConv(graph, "to " + std::to_string(last), last, channels);
  graph.MarkOutput(last);
  int converted = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SyntheticCosts costs(seed);
    costs.seconds_per_crossed_byte = PriceOf(seed);
    costs.distance_factors = {{64e-9, 1}, {256e-9, 4}};
    const GraphTuneOptions options = SyntheticOptions();
    Candidates candidates = FindCandidates(graph, SyntheticLog(graph, {0, 8, 16}, seed), SyntheticCpu(), 2);
    for (auto& [workload, records] : candidates)
      for (Record& record : records) record.template_name = "portable";
    const Plan plan =
        SolveNetwork(NetworkProblem(graph, candidates, costs, options)).best;  // checks its price
    converted += static_cast<int>(plan.transforms.size());
  }
  EXPECT_GT(converted, 20);
}

TEST(SplitProblem, WithoutAPriceOrWithOneThreadNothingChanges) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = RandomNetwork(seed, 4 + static_cast<int>(seed % 8));
    const Candidates candidates = PlacedCandidates(graph, seed);
    SyntheticCosts costs(seed), priced(seed);
    priced.seconds_per_crossed_byte = 1e-6;
    GraphTuneOptions one = SyntheticOptions();
    one.threads = 1;
    const NetworkProblem free(graph, candidates, costs, SyntheticOptions());
    const NetworkProblem alone(graph, candidates, priced, one);
    const Plan expected = GraphTune(free).plan, plan = GraphTune(alone).plan;
    EXPECT_TRUE(SameSchedules(expected, plan));
    EXPECT_EQ(expected.predicted_seconds, plan.predicted_seconds);
    EXPECT_EQ(free.At({}, {}).built.problem.size(), alone.At({}, {}).built.problem.size());
    for (const NodePlan& node : plan.nodes) EXPECT_EQ(node.split, Split::kEven);
  }
}

TEST(SplitProblem, EvenSharesCostNoLess) {
  int dearer = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = RandomNetwork(seed, 6);
    SyntheticCosts costs(seed);
    costs.seconds_per_crossed_byte = 1e-6;
    const NetworkProblem problem(graph, PlacedCandidates(graph, seed), costs, SyntheticOptions());
    const Plan best = GraphTune(problem).plan;
    const Plan even = GraphTune(problem.Restricted({.even_shares = true})).plan;
    for (const NodePlan& node : even.nodes) EXPECT_EQ(node.split, Split::kEven);
    EXPECT_LE(best.predicted_seconds, even.predicted_seconds * (1 + 1e-9));
    dearer += best.predicted_seconds < 0.99 * even.predicted_seconds;
  }
  EXPECT_GT(dearer, 10);
}

// What a plan took is what it costs from then on, whatever of it was crossing; and the problem agrees.
TEST(SplitProblem, APlanThatRanCostsWhatItTook) {
  int scaled = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = RandomNetwork(seed, 5 + static_cast<int>(seed % 5));
    SyntheticCosts costs(seed);
    costs.seconds_per_crossed_byte = PriceOf(seed);
    Candidates candidates = FindCandidates(graph, SyntheticLog(graph, {0, 8}, seed), SyntheticCpu(), 2);
    const NetworkProblem problem(graph, candidates, costs, SyntheticOptions());
    Plan plan = GraphTune(problem).plan;
    Corrections corrections;
    double took = 0;
    for (const NodePlan& node : plan.nodes) {
      const double seconds = node.predicted_seconds * (0.3 + 2 * HashFraction(node.node, seed));
      took += seconds;
      const DealtTasks dealt{.split = node.split, .crossing_seconds = node.crossing_seconds};
      if (node.record)
        corrections.LearnConv(node.node, *node.record, seconds, dealt);
      else
        corrections.LearnOp(node.node, node.layouts.in, node.predicted_seconds - node.crossing_seconds,
                            seconds, dealt);
      scaled += corrections.CrossingScale(node.node) < 1;
    }
    for (const TransformPlan& transform : plan.transforms) took += transform.predicted_seconds;
    PricePlan(graph, costs, plan, corrections);
    EXPECT_NEAR(plan.predicted_seconds, took, 1e-9 * took);
    EXPECT_LE(GraphTune(problem, corrections).plan.predicted_seconds, took * (1 + 1e-9));
  }
  EXPECT_GT(scaled, 10);
}

TEST(SplitProblem, ExplanationsTellCrossingApart) {
  int crossings = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = RandomNetwork(seed, 4);
    SyntheticCosts costs(seed);
    costs.seconds_per_crossed_byte = 1e-6;
    const NetworkProblem problem(graph, PlacedCandidates(graph, seed), costs, SyntheticOptions());
    const SolvedNetwork network = SolveNetwork(problem);
    for (const Graph::NodeId node : PlannedNodes(graph, network.best)) {
      for (const ExplainedChoice& option : ExplainNode(network, node)) {
        double sum = 0;
        for (const CostTerm& term : option.terms) {
          sum += term.seconds;
          crossings += term.kind == TermKind::kCrossing || term.kind == TermKind::kOtherCrossing;
        }
        EXPECT_NEAR(sum, option.total_seconds - network.best.predicted_seconds, 1e-9 * option.total_seconds);
        EXPECT_GE(option.total_seconds, network.best.predicted_seconds * (1 - 1e-9));
      }
      EXPECT_EQ(ChosenBy(graph, network.built(), network.best, node),
                ChosenBy(network.built(), network.assignment, node));
    }
  }
  EXPECT_GT(crossings, 50);
}

// Where even shares are no choice, since another split deals alike, that one stands for them.
TEST(SplitProblem, APlanInEvenSharesIsRecognised) {
  int left_out = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = RandomNetwork(seed, 4);
    SyntheticCosts costs(seed);
    costs.seconds_per_crossed_byte = PriceOf(seed);
    const NetworkProblem problem(graph, PlacedCandidates(graph, seed), costs, SyntheticOptions());
    const SolvedNetwork network = SolveNetwork(problem);
    const Plan even = GraphTune(problem.Restricted({.even_shares = true})).plan;
    std::vector<FixedNode> choices;
    for (const Graph::NodeId node : PlannedNodes(graph, even)) {
      const std::optional<NodeChoice> choice = ChosenBy(graph, network.built(), even, node);
      ASSERT_TRUE(choice.has_value()) << graph.node(node).name;
      const NodeVariables& vars = network.built().nodes[node];
      left_out += vars.out_owners[static_cast<size_t>(choice->out)].split != Split::kEven;
      choices.push_back({node, *choice});
    }
    EXPECT_NEAR(BestPlanWith(network, choices).predicted_seconds, even.predicted_seconds,
                1e-9 * even.predicted_seconds);
  }
  EXPECT_GT(left_out, 10);
}

// Bounds the work, not the time.
TEST(SplitProblem, SolvesTheBuiltInNetworksExactlyAndQuickly) {
  for (const char* name : {"resnet50", "mobilenet_v2", "densenet121", "inception_v3"}) {
    SCOPED_TRACE(name);
    const Graph graph = OptimizeGraph(BuildNetwork(name));
    SyntheticCosts costs(2);
    costs.seconds_per_crossed_byte = 1e-7;
    const GraphTuneResult result =
        GraphTune(graph, SyntheticLog(graph, {8, 16, 0}, 1), costs, SyntheticOptions());
    EXPECT_EQ(result.plan.certificate, "optimal");
    EXPECT_LT(result.stats.total_entries, 20000000u);
  }
}

}  // namespace
}  // namespace tilesmith
