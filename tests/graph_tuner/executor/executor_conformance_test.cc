#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "graph_tuner/executor/heuristic_plan.h"
#include "ops/passes/passes.h"
#include "tests/graph_tuner/support/executor_testing.h"
#include "tests/support/ops/conformance.h"

namespace tilesmith {
namespace {

// With libonnx-testdata 1.12; a smaller number means that something refuses what it used to take.
constexpr size_t kCasesThatRun = 192;

std::vector<Tensor> Execute(const Graph& graph, const std::vector<Tensor>& inputs) {
  const Target cpu = TestCpu();
  Executor executor(graph, HeuristicPlan(graph, cpu, 2), OpenDevice(cpu, 2));
  std::vector<Tensor> outputs = UnwrittenOutputs(graph);
  executor.Run(Pointers(inputs), Pointers(outputs));
  return outputs;
}

TEST(ExecutorConformance, OnnxTestDataThroughPassesAndExecutor) {
  if (!HaveConformanceData()) GTEST_SKIP() << "install the package libonnx-testdata to run ONNX's cases";
  const ConformanceReport report = RunConformance([](const Graph& graph, const std::vector<Tensor>& inputs) {
    return Execute(OptimizeGraph(graph), inputs);
  });
  std::cout << DescribeConformance(report);
  EXPECT_THAT(report.failures, testing::IsEmpty());
  EXPECT_GE(report.ran.size(), kCasesThatRun);
}

TEST(ExecutorConformance, OnnxTestDataAsImported) {
  if (!HaveConformanceData()) GTEST_SKIP() << "install the package libonnx-testdata to run ONNX's cases";
  EXPECT_THAT(RunConformance(Execute).failures, testing::IsEmpty());
}

}  // namespace
}  // namespace tilesmith
