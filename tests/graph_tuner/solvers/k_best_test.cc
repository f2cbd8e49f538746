#include "graph_tuner/solvers/k_best.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "graph_tuner/problem/build_problem.h"
#include "graph_tuner/solvers/solver.h"
#include "ops/networks/networks.h"
#include "ops/passes/passes.h"
#include "tests/graph_tuner/support/random_problems.h"
#include "tests/graph_tuner/support/synthetic.h"

namespace tilesmith {
namespace {

using VarId = LayoutProblem::VarId;

// The cost of the best assignment for each choice of what matters, cheapest first, by trying everything.
std::vector<double> AllCosts(const LayoutProblem& problem, const std::vector<bool>& matters) {
  std::map<std::vector<int>, double> best;
  Assignment assignment(problem.size(), 0);
  for (bool more = true; more;) {
    std::vector<int> part;
    for (VarId v = 0; v < problem.size(); ++v)
      if (matters[v]) part.push_back(assignment[v]);
    const double cost = Evaluate(problem, assignment);
    const auto [at, is_new] = best.try_emplace(part, cost);
    at->second = std::min(at->second, cost);
    more = false;
    for (VarId v = 0; v < problem.size() && !more; ++v) {
      more = ++assignment[v] < problem.Options(v);
      if (!more) assignment[v] = 0;
    }
  }
  std::vector<double> costs;
  for (const auto& [part, cost] : best)
    if (!std::isinf(cost)) costs.push_back(cost);
  std::sort(costs.begin(), costs.end());
  return costs;
}

void ExpectDifferent(const std::vector<Solution>& solutions, const std::vector<bool>& matters) {
  for (size_t a = 0; a < solutions.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      bool differ = false;
      for (VarId v = 0; v < matters.size(); ++v)
        differ = differ || (matters[v] && solutions[a].assignment[v] != solutions[b].assignment[v]);
      EXPECT_TRUE(differ) << a << " and " << b;
    }
  }
}

TEST(SolveKBest, EqualsExhaustiveEnumeration) {
  int several = 0;
  for (unsigned seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const LayoutProblem problem = RandomProblem(seed, 7, 3);
    RandomCosts random(seed + 10000);
    std::vector<bool> matters;
    for (VarId v = 0; v < problem.size(); ++v) matters.push_back(random.Below(4) != 0);
    const int k = 1 + random.Below(7);
    const std::vector<Solution> best = SolveKBest(problem, k, {}, [&](VarId v) { return matters[v]; });
    std::vector<double> expected = AllCosts(problem, matters);
    if (expected.empty()) {
      ASSERT_EQ(best.size(), 1u);
      EXPECT_TRUE(best[0].infeasible);
      continue;
    }
    expected.resize(std::min(expected.size(), static_cast<size_t>(k)));
    ASSERT_EQ(best.size(), expected.size());
    several += best.size() > 2;
    for (size_t i = 0; i < best.size(); ++i) {
      ASSERT_TRUE(best[i].solved());
      EXPECT_NEAR(best[i].cost, expected[i], 1e-9 * (1 + expected[i])) << "number " << i;
      EXPECT_DOUBLE_EQ(best[i].cost, Evaluate(problem, best[i].assignment));
      EXPECT_EQ(best[i].lower_bound, best[0].cost);
    }
    ExpectDifferent(best, matters);
  }
  EXPECT_GT(several, 250);
}

TEST(SolveKBest, FindsTheBestPlansOfANetwork) {
  const LayoutProblem problem = InceptionChain(20, 5, 4);
  ASSERT_GE(problem.size(), 260u);
  std::vector<bool> matters;
  for (VarId v = 0; v < problem.size(); ++v)
    matters.push_back(problem.variable(v).name.find(" made") == std::string::npos);
  const auto is_layout = [&](VarId v) { return matters[v]; };
  const std::vector<Solution> best = SolveKBest(problem, 5, {}, is_layout);
  ASSERT_EQ(best.size(), 5u);
  EXPECT_EQ(best[0].assignment, SolveDp(problem, {}).assignment);
  for (size_t i = 1; i < best.size(); ++i) EXPECT_GE(best[i].cost, best[i - 1].cost);
  EXPECT_EQ(best[3].certificate, "number 4 in order of cost");
  ExpectDifferent(best, matters);
  const std::vector<Solution> again = SolveKBest(problem, 5, {}, is_layout);
  for (size_t i = 0; i < best.size(); ++i) EXPECT_EQ(best[i].assignment, again[i].assignment);
}

TEST(SolveKBest, FindsTheBestPlansOfDensenet) {
  const Graph graph = OptimizeGraph(BuildNetwork("densenet121"));
  const Candidates candidates =
      FindCandidates(graph, SyntheticLog(graph, {1, 8, 16, 0}, 1), SyntheticCpu(), 2);
  SyntheticCosts costs(2);
  Crossings crossings(graph, costs);
  const BuiltProblem built =
      BuildProblem(DealAll(candidates, crossings), LayoutsOf(graph, candidates), crossings);
  std::vector<bool> matters(built.problem.size(), false);
  for (const NodeVariables& vars : built.nodes) {
    if (!vars.in) continue;
    matters[*vars.in] = matters[*vars.out] = true;
  }
  const std::vector<Solution> best = SolveKBest(built.problem, 5, {}, [&](VarId v) { return matters[v]; });
  ASSERT_EQ(best.size(), 5u);
  for (size_t i = 1; i < best.size(); ++i) {
    ASSERT_TRUE(best[i].solved());
    EXPECT_GE(best[i].cost, best[i - 1].cost);
  }
  ExpectDifferent(best, matters);
}

TEST(SolveKBest, SaysSoWhenTheProblemIsTooWide) {
  const LayoutProblem problem = Clique(16, 6, 11);
  const auto all = [](VarId) { return true; };
  const std::vector<Solution> none = SolveKBest(problem, 3, {}, all);
  ASSERT_EQ(none.size(), 1u);
  EXPECT_THAT(none[0].refusal, testing::HasSubstr("too wide"));
}

// The helpers' choice alone makes no other plan.
TEST(SolveKBest, IgnoresWhatDoesNotMatter) {
  LayoutProblem problem;
  problem.AddVariable("layout", {0, 3});
  for (int v = 0; v < 5; ++v) problem.AddVariable("helper", {0, 1});
  const std::vector<Solution> best = SolveKBest(problem, 4, {}, [](VarId v) { return v == 0; });
  ASSERT_EQ(best.size(), 2u);
  EXPECT_EQ(best[0].assignment, (Assignment{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(best[1].assignment, (Assignment{1, 0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace tilesmith
