#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "graph_tuner/problem/graph_tune.h"
#include "graph_tuner/solvers/solver.h"
#include "ops/networks/networks.h"
#include "ops/passes/passes.h"
#include "tests/graph_tuner/support/random_problems.h"
#include "tests/graph_tuner/support/synthetic.h"

namespace tilesmith {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// How the answers to many problems were distributed.
struct Tally {
  int optimal = 0, gaps = 0, infeasible = 0, lost = 0;
  int guessed = 0;  // optimal or with a gap, after a choice that may miss the optimum
};

// What must hold of any answer to a problem that dynamic programming has solved too.
void Check(const LayoutProblem& problem, const Solution& exact, const Solution& answer, Tally& tally) {
  if (!answer.solved()) {
    EXPECT_TRUE(answer.assignment.empty());
    EXPECT_LE(answer.infeasible, exact.infeasible);
    ++(answer.infeasible ? tally.infeasible : tally.lost);
    if (!answer.infeasible) {
      EXPECT_THAT(answer.refusal, HasSubstr("does not prove"));
    }
    return;
  }
  ASSERT_TRUE(exact.solved()) << exact.refusal;
  tally.guessed += answer.stats.heuristic_choices > 0;
  const double rounding = 1e-9 * (1 + std::abs(exact.cost));
  EXPECT_DOUBLE_EQ(answer.cost, Evaluate(problem, answer.assignment));
  EXPECT_GE(answer.cost, exact.cost - rounding);
  EXPECT_LE(answer.lower_bound, exact.cost + rounding);
  EXPECT_LE(answer.lower_bound, answer.cost);
  if (answer.certificate == "optimal") {
    ++tally.optimal;
    EXPECT_NEAR(answer.cost, exact.cost, rounding);
    EXPECT_EQ(answer.lower_bound, answer.cost);
  } else {
    ++tally.gaps;
    EXPECT_EQ(answer.certificate, GapText(answer.cost, answer.lower_bound));
  }
}

SolveLimits TightLimits(unsigned seed) {
  SolveLimits limits;
  limits.beam_width = 1 + seed % 5;
  limits.bound_table_entries = 1 + seed % 7;
  return limits;
}

Tally CheckOnRandomProblems(SolveFunction solve) {
  Tally tally;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const LayoutProblem problem = seed % 2 == 0 ? RandomProblem(seed, 9, 4) : RandomDenseProblem(seed);
    Check(problem, SolveExhaustive(problem, {}), solve(problem, TightLimits(seed)), tally);
  }
  return tally;
}

TEST(SolvePbqp, NeitherBeatsTheOptimumNorClaimsMoreThanItProves) {
  const Tally tally = CheckOnRandomProblems(&SolvePbqp);
  EXPECT_GT(tally.guessed, 500);
  EXPECT_GT(tally.gaps, 200);
  EXPECT_GT(tally.optimal, 1000);
  EXPECT_GT(tally.infeasible, 100);
  EXPECT_LT(tally.lost, 60);
}

TEST(SolveBeam, NeitherBeatsTheOptimumNorClaimsMoreThanItProves) {
  const Tally tally = CheckOnRandomProblems(&SolveBeam);
  EXPECT_GT(tally.guessed, 500);
  EXPECT_GT(tally.gaps, 200);
  EXPECT_GT(tally.optimal, 1000);
  EXPECT_GT(tally.infeasible, 100);
  EXPECT_LT(tally.lost, 60);
}

TEST(SolveBeam, IsExactWhenItsWidthSuffices) {
  SolveLimits wide;
  wide.beam_width = 1 << 16;
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const LayoutProblem problem = RandomDenseProblem(seed);
    Tally tally;
    Check(problem, SolveDp(problem, {}), SolveBeam(problem, wide), tally);
    EXPECT_EQ(tally.optimal + tally.infeasible, 1);
    EXPECT_EQ(tally.guessed, 0);
  }
}

TEST(SolvePbqp, IsExactWhereVariablesHaveTwoNeighboursAtMost) {
  int feasible = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const LayoutProblem problem = RandomSeriesParallelProblem(seed);
    const Solution pbqp = SolvePbqp(problem, {});
    EXPECT_EQ(pbqp.stats.heuristic_choices, 0);
    Tally tally;
    Check(problem, SolveExhaustive(problem, {}), pbqp, tally);
    EXPECT_EQ(tally.optimal + tally.infeasible, 1);
    feasible += tally.optimal;
  }
  EXPECT_GT(feasible, 400);
}

TEST(ApproximateSolvers, SolveNetworksThatDynamicProgrammingSolves) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const LayoutProblem problem = MixedNetwork(60 + 20 * static_cast<int>(seed), 4, seed);
    const Solution exact = SolveDp(problem, {});
    ASSERT_TRUE(exact.solved()) << exact.refusal;
    for (SolveFunction solve : {&SolvePbqp, &SolveBeam}) {
      Tally tally;
      const Solution answer = solve(problem, {});
      Check(problem, exact, answer, tally);
      EXPECT_EQ(tally.lost, 0);
      EXPECT_LE(answer.cost, exact.cost * 1.1);
      EXPECT_GE(answer.lower_bound, exact.cost * 0.9);
    }
  }
}

TEST(ApproximateSolvers, PlanNetworks) {
  for (const char* name : {"densenet121", "inception_v3"}) {
    SCOPED_TRACE(name);
    const Graph graph = OptimizeGraph(BuildNetwork(name));
    const auto log = SyntheticLog(graph, {1, 8, 16, 0}, 1);
    SyntheticCosts costs(2);
    const auto plan_by = [&](const char* solver) {
      GraphTuneOptions options;
      options.cpu = SyntheticCpu();
      options.threads = 2;
      options.solver = solver;
      return GraphTune(graph, log, costs, options).plan;
    };
    const Plan dp = plan_by("dp"), beam = plan_by("beam"), pbqp = plan_by("pbqp");
    EXPECT_EQ(beam.certificate, "optimal");
    EXPECT_DOUBLE_EQ(beam.predicted_seconds, dp.predicted_seconds);
    EXPECT_THAT(pbqp.certificate, StartsWith("within "));
    EXPECT_GT(pbqp.predicted_seconds, dp.predicted_seconds);
    EXPECT_LT(pbqp.predicted_seconds, 1.05 * dp.predicted_seconds);
  }
}

TEST(ApproximateSolvers, SolveWhatIsTooWideForDynamicProgramming) {
  const LayoutProblem problem = Clique(16, 6, 11);
  ASSERT_FALSE(SolveDp(problem, {}).solved());
  for (SolveFunction solve : {&SolvePbqp, &SolveBeam}) {
    const Solution answer = solve(problem, {});
    ASSERT_TRUE(answer.solved()) << answer.refusal;
    EXPECT_THAT(answer.certificate, StartsWith("within "));
    EXPECT_GT(answer.lower_bound, 0);
    EXPECT_LT(answer.lower_bound, answer.cost);
  }
}

TEST(ApproximateSolvers, AreDeterministic) {
  const LayoutProblem problem = Clique(9, 4, 5);
  for (SolveFunction solve : {&SolvePbqp, &SolveBeam}) {
    const Solution first = solve(problem, TightLimits(2)), second = solve(problem, TightLimits(2));
    EXPECT_EQ(first.assignment, second.assignment);
    EXPECT_EQ(first.certificate, second.certificate);
  }
}

TEST(ApproximateSolvers, TakeTheLowestOfEqualOptions) {
  LayoutProblem problem;
  for (int v = 0; v < 6; ++v) problem.AddVariable("v", {1, 1, 1});
  CostMatrix differ(3, 3);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) differ.at(i, j) = i == j ? 0 : 1;
  for (size_t b = 1; b < 6; ++b)
    for (size_t a = 0; a < b; ++a) problem.AddPairwise(a, b, differ);
  for (const Solver& solver : Solvers())
    EXPECT_EQ(solver.solve(problem, {}).assignment, Assignment(6, 0)) << solver.name;
}

}  // namespace
}  // namespace tilesmith
