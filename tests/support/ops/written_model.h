// What models that tests write compute, and how they are refused.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ops/graph/reference_run.h"
#include "ops/passes/passes.h"
#include "tests/support/ops/onnx_model.h"

namespace tilesmith {

// The model's outputs, the tail's where it has one, optimised and not.
inline std::vector<Tensor> Outputs(const OnnxModel& model, const std::vector<Tensor>& inputs) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) pointers.push_back(&input);
  const Graph graph = OptimizeGraph(model.Import());
  std::vector<Tensor> values = RunReference(graph, pointers);
  if (!graph.tail()) return values;
  pointers.clear();
  for (const Tensor& value : values) pointers.push_back(&value);
  return graph.tail()->Run(pointers, nullptr);
}

// What the importer says of a model that it refuses.
inline std::string ImportError(const OnnxModel& model) {
  try {
    model.Import();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadModel);
    return error.what();
  }
  return "no error";
}

}  // namespace tilesmith
