// A model that leaves sizes of its input open, and what it gives for some.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "graph_tuner/planner/network_run.h"
#include "ops/graph/reference_run.h"
#include "tests/support/ops/onnx_model.h"
#include "tests/support/random.h"
#include "tests/support/temporary_files.h"
#include "tools/api/tilesmith.h"
#include "tools/cli/model.h"
#include "tools/network/outputs.h"

namespace tilesmith {

inline std::vector<float> RandomFloats(size_t count, uint64_t seed) {
  TestRandom random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = random.Uniform();
  return values;
}

// x [N, 3, H, W], all but the channels open, through two convolutions -> y, of half the size, and its mean.
inline std::string WriteOpenModel(const TemporaryDirectory& directory) {
  OnnxModel model;
  model.Input("x", {"N", 3, "H", "W"});
  model.Floats("w1", {16, 3, 3, 3}, RandomFloats(16 * 27, 1));
  model.Floats("w2", {8, 16, 1, 1}, RandomFloats(8 * 16, 2));
  onnx::NodeProto& conv = model.Node("Conv", {"x", "w1"}, {"a"});
  SetInts(conv, "pads", {1, 1, 1, 1});
  SetInts(conv, "strides", {2, 2});
  model.Node("Relu", {"a"}, {"b"});
  model.Node("Conv", {"b", "w2"}, {"y"});
  model.Node("GlobalAveragePool", {"y"}, {"mean"});
  model.Output("y");
  model.Output("mean");
  const std::string path = directory.File("open.onnx");
  WriteFile(path, model.Bytes());
  return path;
}

struct SizedExample {
  std::vector<int64_t> shape;
  Tensor x;
  std::vector<NamedTensor> expected;
};

inline SizedExample ExampleOf(const std::string& path, std::vector<int64_t> shape, uint64_t seed) {
  ModelOptions options;
  options.model = path;
  options.shapes["x"] = shape;
  const Graph graph = LoadModel(options);
  SizedExample example{std::move(shape), {}, {}};
  std::vector<Tensor> inputs = SeededInputs(graph, seed);
  example.expected = ReferenceOutputs(graph, inputs, nullptr);
  example.x = std::move(inputs[0]);
  return example;
}

inline void ExpectRight(const std::vector<OutputTensor>& outputs, const SizedExample& example) {
  ASSERT_EQ(outputs.size(), example.expected.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& expected = example.expected[i].second;
    ASSERT_EQ(outputs[i].shape, expected.shape());
    double largest = 0;
    for (int64_t k = 0; k < expected.size(); ++k) {
      largest = std::max(largest, std::abs(static_cast<double>(expected.floats()[k])));
    }
    for (int64_t k = 0; k < expected.size(); ++k) {
      ASSERT_NEAR(static_cast<const float*>(outputs[i].data)[k], expected.floats()[k], 1e-4 * largest)
          << "output " << i << " element " << k << " of an input " << ShapeToString(example.shape);
    }
  }
}

inline const std::vector<OutputTensor>& RunExample(Session& session, const SizedExample& example) {
  return session.Run({{example.x.raw(), example.shape}});
}

}  // namespace tilesmith
