// Against a solver that shares nothing with ours: toulbar2, on networks far too large to enumerate.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "graph_tuner/solvers/solver.h"
#include "tests/graph_tuner/support/random_problems.h"
#include "tests/support/subprocess.h"
#include "tests/support/temporary_files.h"

namespace tilesmith {
namespace {

constexpr int64_t kTop = int64_t{1} << 40;  // what toulbar2 takes for infinite

std::string CostText(double cost) {
  return std::to_string(std::isinf(cost) ? kTop : static_cast<int64_t>(cost));
}

// Its "wcsp" format: name, variables, most options, cost functions, infinity; the option counts; then for
// each cost function its variables, a default cost, and how many entries differ from it, with each of these.
std::string ToWcsp(const LayoutProblem& problem) {
  std::string counts, functions;
  int most = 0;
  for (LayoutProblem::VarId var = 0; var < problem.size(); ++var) {
    const int options = problem.Options(var);
    most = std::max(most, options);
    counts += std::to_string(options) + " ";
    functions += "1 " + std::to_string(var) + " 0 " + std::to_string(options) + "\n";
    for (int i = 0; i < options; ++i)
      functions +=
          std::to_string(i) + " " + CostText(problem.variable(var).costs[static_cast<size_t>(i)]) + "\n";
  }
  const auto& graph = problem.boost();
  for (auto [it, end] = boost::edges(graph); it != end; ++it) {
    const auto [a, b] = Endpoints(graph, *it);
    const CostMatrix& costs = graph[*it];
    functions += "2 " + std::to_string(a) + " " + std::to_string(b) + " 0 " +
                 std::to_string(costs.values.size()) + "\n";
    for (int i = 0; i < costs.rows; ++i)
      for (int j = 0; j < costs.cols; ++j)
        functions += std::to_string(i) + " " + std::to_string(j) + " " + CostText(costs.at(i, j)) + "\n";
  }
  return "network " + std::to_string(problem.size()) + " " + std::to_string(most) + " " +
         std::to_string(problem.size() + boost::num_edges(graph)) + " " + std::to_string(kTop) + "\n" +
         counts + "\n" + functions;
}

std::optional<int64_t> NumberAfter(const std::string& text, const std::string& label) {
  const size_t at = text.find(label);
  if (at == std::string::npos) return std::nullopt;
  return std::stoll(text.substr(at + label.size()));
}

bool HasToulbar2() {
  try {
    return RunProgram({"toulbar2", "--help"}).exit_code != 127;
  } catch (const std::exception&) {
    return false;
  }
}

TEST(OutsideOracle, AgreesOnTheTotalsOfNetworks) {
  if (!HasToulbar2()) GTEST_SKIP() << "toulbar2 is not installed (tools/install-deps --for-checks)";
  const TemporaryDirectory directory;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const LayoutProblem problem =
        MixedNetwork(50 * static_cast<int>(seed), 3 + static_cast<int>(seed % 3), seed);
    const std::string path = directory.File("network.wcsp");
    WriteFile(path, ToWcsp(problem));
    const ProgramResult outside = RunProgram({"toulbar2", path});
    const std::optional<int64_t> optimum = NumberAfter(outside.out, "Optimum: ");
    ASSERT_TRUE(optimum) << outside.out << outside.err;
    const Solution dp = SolveDp(problem, {});
    ASSERT_TRUE(dp.solved()) << dp.refusal;
    EXPECT_EQ(dp.cost, static_cast<double>(*optimum));
    for (SolveFunction solve : {&SolvePbqp, &SolveBeam}) {
      const Solution answer = solve(problem, {});
      ASSERT_TRUE(answer.solved()) << answer.refusal;
      EXPECT_GE(answer.cost, static_cast<double>(*optimum));
      EXPECT_LE(answer.lower_bound, static_cast<double>(*optimum) * (1 + 1e-9));
      if (answer.certificate == "optimal") {
        EXPECT_EQ(answer.cost, static_cast<double>(*optimum));
      }
    }
  }
}

}  // namespace
}  // namespace tilesmith
