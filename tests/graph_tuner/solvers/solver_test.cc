#include "graph_tuner/solvers/solver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "graph_tuner/solvers/pairwise_costs.h"
#include "layouts/base/error.h"
#include "tests/graph_tuner/support/random_problems.h"

namespace tilesmith {
namespace {

using testing::HasSubstr;
using VarId = LayoutProblem::VarId;

TEST(Solvers, DpEqualsExhaustiveOnRandomProblems) {
  int feasible = 0;
  for (unsigned seed = 0; seed < 2500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const LayoutProblem problem = seed % 2 == 0 ? RandomProblem(seed) : RandomDenseProblem(seed);
    const Solution dp = SolveDp(problem, {});
    const Solution exhaustive = SolveExhaustive(problem, {});
    ASSERT_EQ(dp.solved(), exhaustive.solved()) << dp.refusal << " / " << exhaustive.refusal;
    if (!dp.solved()) {
      EXPECT_EQ(dp.refusal, "no assignment has a finite cost");
      EXPECT_TRUE(dp.infeasible && exhaustive.infeasible);
      continue;
    }
    ++feasible;
    EXPECT_NEAR(dp.cost, exhaustive.cost, 1e-9 * (1 + std::abs(exhaustive.cost)));
    EXPECT_DOUBLE_EQ(dp.cost, Evaluate(problem, dp.assignment));
    EXPECT_EQ(dp.certificate, "optimal");
    EXPECT_EQ(dp.lower_bound, dp.cost);
    EXPECT_EQ(exhaustive.lower_bound, exhaustive.cost);
  }
  EXPECT_GT(feasible, 1500);
}

// The oracle itself, against the plainest loop there is.
TEST(Solvers, ExhaustiveEqualsPlainEnumeration) {
  for (unsigned seed = 5000; seed < 5200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const LayoutProblem problem = RandomProblem(seed);
    Assignment assignment(problem.size(), 0);
    double best = kForbidden;
    for (bool more = true; more;) {
      best = std::min(best, Evaluate(problem, assignment));
      more = false;
      for (VarId v = 0; v < problem.size() && !more; ++v) {
        more = ++assignment[v] < problem.Options(v);
        if (!more) assignment[v] = 0;
      }
    }
    const Solution exhaustive = SolveExhaustive(problem, {});
    ASSERT_EQ(exhaustive.solved(), !std::isinf(best));
    if (exhaustive.solved()) {
      EXPECT_NEAR(exhaustive.cost, best, 1e-9 * (1 + best));
    }
  }
}

TEST(Solvers, ReductionsKeepOnlyTheBestOptionOfALoneVariable) {
  RandomCosts random(7);
  LayoutProblem problem;
  problem.AddVariable("root", random.Costs(4, 0));
  ReducedProblem before(problem);
  EXPECT_EQ(before.options(0).size(), 4u);
  before.Reduce();
  EXPECT_EQ(before.options(0).size(), 1u);
}

TEST(SolveDp, SolvesAThousandNodesOfInceptionBlocks) {
  const LayoutProblem problem = InceptionChain(200, 6, 1);
  const Solution dp = SolveDp(problem, {});
  ASSERT_TRUE(dp.solved()) << dp.refusal;
  // Work, not time: what keeps this fast on any machine.
  EXPECT_LT(dp.stats.total_entries, 12000000u);
  EXPECT_LE(dp.stats.induced_width, 8);
  // No single change improves an optimum.
  Assignment changed = dp.assignment;
  for (VarId v = 0; v < problem.size(); v += 53) {
    for (int option = 0; option < problem.Options(v); ++option) {
      changed[v] = option;
      EXPECT_GE(Evaluate(problem, changed), dp.cost - 1e-9);
    }
    changed[v] = dp.assignment[v];
  }
}

TEST(SolveDp, IsDeterministic) {
  const LayoutProblem problem = InceptionChain(10, 4, 3);
  EXPECT_EQ(SolveDp(problem, {}).assignment, SolveDp(problem, {}).assignment);
}

TEST(SolveDp, SaysWhenAGraphIsTooWide) {
  const LayoutProblem problem = Clique(16, 6, 11);
  const Solution dp = SolveDp(problem, {});
  EXPECT_FALSE(dp.solved());
  EXPECT_TRUE(dp.assignment.empty());
  EXPECT_THAT(dp.refusal, HasSubstr("too wide for exact dynamic programming: induced width 15"));
  EXPECT_THAT(dp.refusal, HasSubstr("`solver` pbqp and `solver` beam"));
  SolveLimits limits;
  limits.partial_assignments = 1000;
  EXPECT_THAT(SolveExhaustive(problem, limits).refusal, HasSubstr("more than 1000 partial assignments"));
}

TEST(SolveAuto, TakesWhatStatesItsGapWhereAGraphIsTooWide) {
  const LayoutProblem wide = Clique(16, 6, 11), narrow = InceptionChain(10, 4, 3);
  const Solution exact = SolveAuto(narrow, {}), found = SolveAuto(wide, {});
  EXPECT_EQ(exact.solver, "dp");
  EXPECT_EQ(exact.assignment, SolveDp(narrow, {}).assignment);
  ASSERT_TRUE(found.solved()) << found.refusal;
  EXPECT_DOUBLE_EQ(found.cost, std::min(SolveBeam(wide, {}).cost, SolvePbqp(wide, {}).cost));
  EXPECT_LE(found.lower_bound, found.cost);
  EXPECT_THAT((std::vector<std::string_view>{"beam", "pbqp"}), testing::Contains(found.solver));
}

TEST(EliminationOrder, KnowsTheWidthOfTreesCyclesAndCliques) {
  auto width = [](int n, const std::vector<std::pair<int, int>>& edges) {
    std::vector<std::vector<int>> neighbours(static_cast<size_t>(n), std::vector<int>{});
    for (auto [a, b] : edges) {
      neighbours[static_cast<size_t>(a)].push_back(b);
      neighbours[static_cast<size_t>(b)].push_back(a);
    }
    const EliminationOrder order =
        ChooseEliminationOrder(neighbours, std::vector<int>(static_cast<size_t>(n), 3));
    EXPECT_EQ(order.order.size(), static_cast<size_t>(n));
    EXPECT_DOUBLE_EQ(order.largest_table, std::pow(3, order.width));
    return order.width;
  };
  EXPECT_EQ(width(1, {}), 0);
  EXPECT_EQ(width(5, {{0, 1}, {1, 2}, {1, 3}, {3, 4}}), 1);
  EXPECT_EQ(width(6, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 0}}), 2);
  EXPECT_EQ(width(4, {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}), 3);
}

TEST(Solvers, AreFoundByName) {
  EXPECT_EQ(FindSolver("dp").name, "dp");
  EXPECT_EQ(Solvers().front().name, "auto");
  try {
    FindSolver("dynamic");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_STREQ(error.what(), "unknown solver \"dynamic\" (known: auto, dp, pbqp, beam, exhaustive)");
  }
}

}  // namespace
}  // namespace tilesmith
