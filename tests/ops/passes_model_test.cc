#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "ops/onnx_import.h"
#include "ops/passes/passes.h"
#include "ops/reference_run.h"
#include "tests/support/random.h"

namespace tilesmith {
namespace {

TEST(PassesOnATrainedModel, ExpressionNetStaysTheSame) {
  const std::filesystem::path path =
      std::filesystem::path(TILESMITH_SOURCE_DIR) / "models/fr_expression.onnx";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent: run tools/fetch-models";
  const Graph graph = ImportOnnx(path, {.batch = 1});
  const Graph optimized = OptimizeGraph(graph);
  for (Graph::NodeId id = 0; id < optimized.size(); ++id) {
    EXPECT_NE(optimized.node(id).op->Type(), "Identity") << optimized.node(id).name;
  }
  ASSERT_EQ(graph.GraphInputs().size(), 1u);
  Tensor input(graph.node(graph.GraphInputs()[0]).shape);
  FillUniform({input.floats(), static_cast<size_t>(input.size())}, 1);
  const Tensor* inputs[] = {&input};
  const std::vector<Tensor> before = RunReference(graph, inputs), after = RunReference(optimized, inputs);
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    ASSERT_EQ(before[i].shape(), after[i].shape());
    float largest = 0, error = 0;
    for (int64_t j = 0; j < before[i].size(); ++j) {
      largest = std::max(largest, std::abs(before[i].floats()[j]));
      error = std::max(error, std::abs(before[i].floats()[j] - after[i].floats()[j]));
    }
    EXPECT_GT(largest, 0);
    EXPECT_LE(error, 1e-4 * largest) << "output " << i;
  }
}

}  // namespace
}  // namespace tilesmith
