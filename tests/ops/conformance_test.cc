#include "tests/support/ops/conformance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "ops/graph/reference_run.h"
#include "ops/passes/passes.h"

namespace tilesmith {
namespace {

// With libonnx-testdata 1.12; a smaller number means that the importer refuses what it used to take.
constexpr size_t kCasesThatRun = 881;

std::vector<Tensor> OptimizeAndRun(const Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) pointers.push_back(&input);
  return RunReference(OptimizeGraph(graph), pointers);
}

TEST(Conformance, OnnxTestDataThroughTheReference) {
  if (!HaveConformanceData()) GTEST_SKIP() << "install the package libonnx-testdata to run ONNX's cases";
  const ConformanceReport report = RunConformance(OptimizeAndRun);
  std::cout << DescribeConformance(report);
  EXPECT_THAT(report.failures, testing::IsEmpty());
  EXPECT_GE(report.ran.size(), kCasesThatRun);
}

}  // namespace
}  // namespace tilesmith
