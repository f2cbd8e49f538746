#include <gtest/gtest.h>

#include "graph_tuner/solvers/solver.h"

namespace tilesmith {
namespace {

TEST(Certificate, StatesTheGapRoundedToTheSafeSide) {
  EXPECT_EQ(GapText(0.0125, 0.012345), "within 1.26% of optimal (bound 12.34 ms)");
  EXPECT_EQ(GapText(0.0123456, 0.01234559), "within 0.01% of optimal (bound 12.34 ms)");
  EXPECT_EQ(GapText(3.0, 1.5), "within 100.00% of optimal (bound 1500 ms)");
  EXPECT_EQ(GapText(0.001, 0), "at most 1 ms above optimal");
  EXPECT_EQ(GapText(0.0012341, -0.001), "at most 2.235 ms above optimal");
}

TEST(Certificate, AGapOfRoundingIsNone) {
  LayoutProblem problem;
  problem.AddVariable("v", {2.0, 3.0});
  const Solution rounded = BoundedSolution(problem, {0}, 2.0 - 1e-12, {});
  EXPECT_EQ(rounded.certificate, "optimal");
  EXPECT_EQ(rounded.lower_bound, 2.0);
  const Solution above = BoundedSolution(problem, {0}, 2.0 + 1e-12, {});
  EXPECT_EQ(above.certificate, "optimal");
  EXPECT_EQ(above.lower_bound, 2.0);
  const Solution apart = BoundedSolution(problem, {1}, 2.0, {});
  EXPECT_EQ(apart.certificate, "within 50.00% of optimal (bound 2000 ms)");
  EXPECT_EQ(apart.lower_bound, 2.0);
  EXPECT_EQ(apart.cost, 3.0);
}

}  // namespace
}  // namespace tilesmith
