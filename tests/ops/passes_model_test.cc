// The passes on trained models, which tools/fetch-models brings.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "ops/graph/reference_run.h"
#include "ops/onnx/onnx_import.h"
#include "ops/passes/passes.h"
#include "tests/support/random.h"

namespace tilesmith {
namespace {

struct TrainedModel {
  const char* name;
  const char* input;
  Shape shape;                     // as small as the model allows
  std::vector<std::string> types;  // ops that no pass may leave
};

const TrainedModel kModels[] = {
    {"fr_expression", "input", {1, 3, 224, 224}, {"Identity"}},
    {"common_det", "images", {1, 3, 64, 64}, {"Identity", "Slice", "Mul"}},
    {"ch_PP-OCRv4_det_infer", "x", {1, 3, 64, 64}, {"Identity", "Clip", "Div", "ConvTranspose"}},
};

class PassesOnATrainedModel : public testing::TestWithParam<size_t> {};

TEST_P(PassesOnATrainedModel, ComputeTheSame) {
  const TrainedModel& model = kModels[GetParam()];
  const std::filesystem::path path =
      std::filesystem::path(TILESMITH_SOURCE_DIR) / "models" / (std::string(model.name) + ".onnx");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent: run tools/fetch-models";
  const Graph graph = ImportOnnx(path, {.input_shapes = {{model.input, model.shape}}});
  const Graph optimized = OptimizeGraph(graph);
  for (Graph::NodeId id = 0; id < optimized.size(); ++id) {
    const Node& node = optimized.node(id);
    EXPECT_EQ(std::ranges::count(model.types, node.op->Type()), 0) << node.name << ", " << node.op->Type();
  }
  ASSERT_EQ(graph.GraphInputs().size(), 1u);
  Tensor input(model.shape);
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

INSTANTIATE_TEST_SUITE_P(Fetched, PassesOnATrainedModel, testing::Range(size_t{0}, std::size(kModels)));

}  // namespace
}  // namespace tilesmith
