#include <gtest/gtest.h>

#include <random>
#include <set>

#include "graph_tuner/solvers/layout_problem.h"
#include "graph_tuner/solvers/solver.h"
#include "layouts/base/error.h"

namespace tilesmith {
namespace {

TEST(LayoutProblem, EvaluatesUnaryAndPairwiseCostsInEitherOrientation) {
  LayoutProblem problem;
  const auto a = problem.AddVariable("a", {1, 2});
  const auto b = problem.AddVariable("b", {10, 20, 30});
  CostMatrix ab(2, 3), ba(3, 2);
  ab.at(1, 2) = 100;
  ba.at(2, 1) = 1000;
  ba.at(0, 1) = 5000;
  problem.AddPairwise(a, b, ab);
  problem.AddPairwise(b, a, ba);  // accumulates, transposed
  problem.AddUnary(a, 1, 0.5);
  EXPECT_DOUBLE_EQ(Evaluate(problem, {0, 0}), 11);
  EXPECT_DOUBLE_EQ(Evaluate(problem, {1, 2}), 2.5 + 30 + 1100);
  EXPECT_DOUBLE_EQ(Evaluate(problem, {1, 0}), 2.5 + 10 + 5000);
  EXPECT_EQ(boost::num_edges(problem.boost()), 1u);
}

TEST(LayoutProblem, RefusesMisuse) {
  LayoutProblem problem;
  const auto a = problem.AddVariable("a", {1, 2});
  EXPECT_THROW(problem.AddVariable("none", {}), Error);
  EXPECT_THROW(problem.AddVariable("nan", {std::nan("")}), Error);
  EXPECT_THROW(problem.AddPairwise(a, a, CostMatrix(2, 2)), Error);
  const auto b = problem.AddVariable("b", {1});
  EXPECT_THROW(problem.AddPairwise(a, b, CostMatrix(1, 2)), Error);
  EXPECT_THROW(Evaluate(problem, {0}), Error);
  CostMatrix negative(2, 1);
  negative.at(0, 0) = -1;
  EXPECT_THROW(AddConversions(problem, a, negative, {{b, {0}}}), Error);
}

// With everything but the "made" variables fixed, the least cost is one conversion per distinct form read.
TEST(AddConversions, ChargesEachDistinctFormOnce) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 rng(seed);
    auto draw = [&](int n) { return static_cast<int>(rng() % static_cast<unsigned>(n)); };
    const int forms = 1 + draw(4), producer_options = 1 + draw(3), consumers = 1 + draw(4);
    CostMatrix convert(producer_options, forms);
    for (double& cost : convert.values) cost = draw(3) == 0 ? 0 : 1 + draw(100);

    LayoutProblem problem;
    const int p = draw(producer_options);
    std::vector<double> fix_p(static_cast<size_t>(producer_options), kForbidden);
    fix_p[static_cast<size_t>(p)] = 0;
    const auto producer = problem.AddVariable("producer", fix_p);
    std::vector<TensorUse> uses;
    std::set<int> read;
    for (int i = 0; i < consumers; ++i) {
      std::vector<int> reads(static_cast<size_t>(1 + draw(3)));
      for (int& form : reads) form = draw(forms + 1) - 1;  // kReadsNothing included
      const int chosen = draw(static_cast<int>(reads.size()));
      std::vector<double> fix(reads.size(), kForbidden);
      fix[static_cast<size_t>(chosen)] = 0;
      if (reads[static_cast<size_t>(chosen)] != kReadsNothing)
        read.insert(reads[static_cast<size_t>(chosen)]);
      uses.push_back({problem.AddVariable("consumer", fix), reads});
      if (draw(4) == 0) uses.push_back(uses.back());  // the same tensor in two slots
    }
    AddConversions(problem, producer, convert, uses);
    double expected = 0;
    for (int form : read) expected += convert.at(p, form);
    const Solution solution = SolveExhaustive(problem, {});
    ASSERT_TRUE(solution.solved()) << solution.refusal;
    EXPECT_DOUBLE_EQ(solution.cost, expected);
  }
}

}  // namespace
}  // namespace tilesmith
