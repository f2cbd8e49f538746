#include "graph_tuner/solver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "graph_tuner/solve_dp.h"
#include "graph_tuner/solve_exhaustive.h"
#include "graph_tuner/solve_order.h"
#include "graph_tuner/solve_reduce.h"
#include "layouts/base/error.h"

namespace tilesmith {
namespace {

using testing::HasSubstr;
using VarId = LayoutProblem::VarId;

class Random {
 public:
  explicit Random(unsigned seed) : rng_(seed) {}
  int Below(int n) { return int(rng_() % unsigned(n)); }
  double Cost(int forbidden_percent) {
    if (Below(100) < forbidden_percent) return kForbidden;
    return Below(4) == 0 ? Below(5) : Below(1000000) * 1e-6;  // ties as well as generic values
  }
  std::vector<double> Costs(int n, int forbidden_percent) {
    std::vector<double> costs;
    for (int i = 0; i < n; ++i) costs.push_back(Cost(forbidden_percent));
    return costs;
  }

 private:
  std::mt19937 rng_;
};

LayoutProblem RandomProblem(unsigned seed) {
  Random random(seed);
  LayoutProblem problem;
  const int variables = 1 + random.Below(8), forbidden = random.Below(3) * 15;
  for (int v = 0; v < variables; ++v)
    problem.AddVariable("v" + std::to_string(v), random.Costs(1 + random.Below(4), forbidden / 2));
  const int edges = random.Below(variables * 2);
  for (int e = 0; e < edges && variables > 1; ++e) {
    const auto a = VarId(random.Below(variables)), b = VarId(random.Below(variables));
    if (a == b) continue;
    CostMatrix costs(problem.Options(a), problem.Options(b));
    costs.values = random.Costs(int(costs.values.size()), forbidden);
    problem.AddPairwise(a, b, costs);
  }
  return problem;
}

TEST(Solvers, DpEqualsExhaustiveOnRandomProblems) {
  int feasible = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const LayoutProblem problem = RandomProblem(seed);
    const Solution dp = SolveDp(problem, {});
    const Solution exhaustive = SolveExhaustive(problem, {});
    ASSERT_EQ(dp.solved(), exhaustive.solved()) << dp.refusal << " / " << exhaustive.refusal;
    if (!dp.solved()) {
      EXPECT_EQ(dp.refusal, "no assignment has a finite cost");
      continue;
    }
    ++feasible;
    EXPECT_NEAR(dp.cost, exhaustive.cost, 1e-9 * (1 + std::abs(exhaustive.cost)));
    EXPECT_DOUBLE_EQ(dp.cost, Evaluate(problem, dp.assignment));
    EXPECT_EQ(dp.certificate, "optimal");
  }
  EXPECT_GT(feasible, 1000);
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
  Random random(7);
  LayoutProblem problem;
  problem.AddVariable("root", random.Costs(4, 0));
  ReducedProblem before(problem);
  EXPECT_EQ(before.options(0).size(), 4u);
  before.Reduce();
  EXPECT_EQ(before.options(0).size(), 1u);
}

// Blocks of four branches that share their input's conversions and meet in a concat: the shape of
// Inception, 1000 nodes long.
LayoutProblem InceptionChain(int nodes, int forms, unsigned seed) {
  Random random(seed);
  LayoutProblem problem;
  auto add = [&](const std::string& name) { return problem.AddVariable(name, random.Costs(forms, 0)); };
  CostMatrix convert(forms, forms);
  std::vector<int> reads;
  for (int i = 0; i < forms; ++i) {
    reads.push_back(i);
    for (int j = 0; j < forms; ++j) convert.at(i, j) = i == j ? 0 : 0.05 + 0.001 * random.Below(100);
  }
  VarId last = add("input");
  while (int(problem.size()) < nodes) {
    const VarId concat = add("concat");
    std::vector<TensorUse> uses;
    for (int branch = 0; branch < 4; ++branch) {
      const VarId in = add("in"), out = add("out");
      CostMatrix conv(forms, forms);
      conv.values = random.Costs(forms * forms, 0);
      problem.AddPairwise(in, out, conv);
      uses.push_back({in, reads});
      AddConversions(problem, out, convert, {{concat, reads}});
    }
    AddConversions(problem, last, convert, uses);
    last = concat;
  }
  return problem;
}

TEST(SolveDp, SolvesALongChainOfInceptionBlocks) {
  const LayoutProblem problem = InceptionChain(1000, 6, 1);
  const Solution dp = SolveDp(problem, {});
  ASSERT_TRUE(dp.solved()) << dp.refusal;
  // Work, not time: what keeps this fast on any machine.
  EXPECT_LT(dp.stats.total_entries, 4000000u);
  EXPECT_LE(dp.stats.induced_width, 8);
  // No single change improves an optimum.
  Assignment changed = dp.assignment;
  for (VarId v = 0; v < problem.size(); v += 17) {
    for (int option = 0; option < problem.Options(v); ++option) {
      changed[v] = option;
      EXPECT_GE(Evaluate(problem, changed), dp.cost - 1e-9);
    }
    changed[v] = dp.assignment[v];
  }
}

TEST(SolveDp, IsDeterministic) {
  const LayoutProblem problem = InceptionChain(120, 4, 3);
  EXPECT_EQ(SolveDp(problem, {}).assignment, SolveDp(problem, {}).assignment);
}

TEST(SolveDp, SaysWhenAGraphIsTooWide) {
  LayoutProblem problem;
  Random random(11);
  for (int v = 0; v < 16; ++v) problem.AddVariable("v", random.Costs(6, 0));
  for (VarId a = 0; a < 16; ++a) {
    for (VarId b = a + 1; b < 16; ++b) {
      CostMatrix costs(6, 6);
      for (double& cost : costs.values) cost = 100.0 * random.Below(1000);
      problem.AddPairwise(a, b, costs);
    }
  }
  const Solution dp = SolveDp(problem, {});
  EXPECT_FALSE(dp.solved());
  EXPECT_TRUE(dp.assignment.empty());
  EXPECT_THAT(dp.refusal, HasSubstr("too wide for exact dynamic programming: induced width 15"));
  SolveLimits limits;
  limits.partial_assignments = 1000;
  EXPECT_THAT(SolveExhaustive(problem, limits).refusal, HasSubstr("more than 1000 partial assignments"));
}

TEST(EliminationOrder, KnowsTheWidthOfTreesCyclesAndCliques) {
  auto width = [](int n, const std::vector<std::pair<int, int>>& edges) {
    std::vector<std::vector<int>> neighbours(size_t(n), std::vector<int>{});
    for (auto [a, b] : edges) {
      neighbours[size_t(a)].push_back(b);
      neighbours[size_t(b)].push_back(a);
    }
    const EliminationOrder order = ChooseEliminationOrder(neighbours, std::vector<int>(size_t(n), 3));
    EXPECT_EQ(order.order.size(), size_t(n));
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
  EXPECT_EQ(Solvers().front().name, "dp");
  try {
    FindSolver("dynamic");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_STREQ(error.what(), "unknown solver \"dynamic\" (known: dp, exhaustive)");
  }
}

}  // namespace
}  // namespace tilesmith
