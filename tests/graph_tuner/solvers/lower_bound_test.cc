#include "graph_tuner/solvers/lower_bound.h"

#include <gtest/gtest.h>

#include <cmath>

#include "graph_tuner/solvers/bucket_elimination.h"
#include "graph_tuner/solvers/solver.h"
#include "tests/graph_tuner/support/random_problems.h"

namespace tilesmith {
namespace {

double CostOf(const PairwiseCosts& costs, const std::vector<int>& options) {
  double sum = 0;
  for (size_t var = 0; var < options.size(); ++var)
    sum += costs.unary[var][static_cast<size_t>(options[var])];
  for (const PairwiseEdge& edge : costs.edges)
    sum += edge.costs.at(options[static_cast<size_t>(edge.a)], options[static_cast<size_t>(edge.b)]);
  return sum;
}

PairwiseCosts CostsOfProblem(const LayoutProblem& problem) { return CostsOf(ReducedProblem(problem)); }

TEST(Reparametrise, KeepsEveryAssignmentsCostAndRaisesTheSum) {
  int raised = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const LayoutProblem problem = RandomProblem(seed, 9, 4);
    const PairwiseCosts before = CostsOfProblem(problem);
    PairwiseCosts after = before;
    Reparametrise(after);
    EXPECT_GE(SumOfLeast(after), SumOfLeast(before) - 1e-9);
    raised += SumOfLeast(after) > SumOfLeast(before) + 1e-3;
    RandomCosts random(seed);
    for (int i = 0; i < 20; ++i) {
      std::vector<int> options;
      for (int var = 0; var < before.size(); ++var) options.push_back(random.Below(before.Options(var)));
      const double cost = CostOf(before, options), moved = CostOf(after, options);
      if (std::isinf(cost)) {
        EXPECT_EQ(moved, kForbidden);
      } else {
        EXPECT_NEAR(moved, cost, 1e-9 * (1 + cost));
      }
    }
  }
  EXPECT_GT(raised, 150);
}

TEST(LowerBound, IsNeverAboveTheOptimumAndTightensWithLargerTables) {
  int exact = 0, improved = 0;
  for (unsigned seed = 0; seed < 2500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const LayoutProblem problem = seed % 2 == 0 ? RandomProblem(seed) : RandomDenseProblem(seed);
    const Solution optimum = SolveExhaustive(problem, {});
    PairwiseCosts costs = CostsOfProblem(problem);
    Reparametrise(costs);
    const double sum = SumOfLeast(costs), small = LowerBound(costs, 1 + seed % 16);
    const double large = LowerBound(costs, 1 << 20);
    if (!optimum.solved()) {
      EXPECT_EQ(large, kForbidden);
      continue;
    }
    const double rounding = 1e-9 * (1 + optimum.cost);
    EXPECT_LE(sum, small + rounding);
    EXPECT_LE(small, optimum.cost + rounding);
    EXPECT_NEAR(large, optimum.cost, rounding);
    exact += small > optimum.cost - rounding;
    improved += small > sum + rounding;
  }
  EXPECT_GT(exact, 500);
  EXPECT_GT(improved, 200);
}

TEST(OptionBounds, HoldForEveryOption) {
  int tight = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    LayoutProblem problem = RandomProblem(seed, 6, 3);
    PairwiseCosts costs = CostsOfProblem(problem);
    Reparametrise(costs);
    if (std::isinf(SumOfLeast(costs))) continue;
    const auto bounds = OptionBounds(costs);
    for (LayoutProblem::VarId var = 0; var < problem.size(); ++var) {
      for (int option = 0; option < problem.Options(var); ++option) {
        LayoutProblem with = problem;
        for (int other = 0; other < problem.Options(var); ++other)
          if (other != option) with.AddUnary(var, other, kForbidden);
        const Solution best = SolveExhaustive(with, {});
        if (!best.solved()) continue;
        EXPECT_LE(bounds[var][static_cast<size_t>(option)], best.cost + 1e-9 * (1 + best.cost));
        tight += bounds[var][static_cast<size_t>(option)] > best.cost - 1e-9;
      }
    }
  }
  EXPECT_GT(tight, 100);
}

TEST(Eliminate, SaysWhetherItSplitABucket) {
  const PairwiseCosts costs = CostsOfProblem(Clique(6, 3, 1));
  const std::vector<int> order = ChooseEliminationOrder(costs).order;
  const Elimination exact = Eliminate(costs, order, 243);
  EXPECT_TRUE(exact.exact);
  EXPECT_DOUBLE_EQ(CostOf(costs, exact.options), exact.least);
  const Elimination split = Eliminate(costs, order, 242);
  EXPECT_FALSE(split.exact);
  EXPECT_TRUE(split.options.empty());
  EXPECT_LE(split.least, exact.least);
}

}  // namespace
}  // namespace tilesmith
