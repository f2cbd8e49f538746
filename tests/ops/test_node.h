// A node of a model file, built in a test: its importer, its op and the op's reference in one go.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "layouts/base/error.h"
#include "ops/base/elements.h"
#include "ops/base/op_registry.h"
#include "ops/onnx/node_importer.h"
#include "tests/support/random.h"

namespace tilesmith {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInf = std::numeric_limits<float>::infinity();

inline Tensor Floats(const Shape& shape, const std::vector<float>& values) {
  Tensor tensor(shape);
  EXPECT_EQ(tensor.size(), static_cast<int64_t>(values.size()));
  std::copy(values.begin(), values.end(), tensor.floats());
  return tensor;
}
inline Tensor Ints(const Shape& shape, const std::vector<int64_t>& values) {
  Tensor tensor(shape, Layout::Nchw(DataType::kI64));
  EXPECT_EQ(tensor.size(), static_cast<int64_t>(values.size()));
  std::copy(values.begin(), values.end(), tensor.ints());
  return tensor;
}
inline Tensor Ints32(const std::vector<int32_t>& values) {
  Tensor tensor({std::ssize(values)}, Layout::Nchw(DataType::kI32));
  std::copy(values.begin(), values.end(), tensor.data<int32_t>());
  return tensor;
}
inline Tensor Bools(const Shape& shape, const std::vector<bool>& values) {
  Tensor tensor(shape, Layout::Nchw(DataType::kBool));
  EXPECT_EQ(tensor.size(), static_cast<int64_t>(values.size()));
  std::copy(values.begin(), values.end(), tensor.data<bool>());
  return tensor;
}
inline Tensor Uniform(const Shape& shape, TestRandom& random, float bound = 1) {
  Tensor tensor(shape);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.floats()[i] = random.Uniform(-bound, bound);
  return tensor;
}
inline Tensor Counting(const Shape& shape) {
  std::vector<float> values(ElementCount(shape));
  std::iota(values.begin(), values.end(), 1.0f);
  return Floats(shape, values);
}

// A node under construction, with the values of its activations kept for evaluation.
struct TestNode {
  explicit TestNode(std::string type, int64_t opset = 13) {
    spec.name = "node7";
    spec.op_type = std::move(type);
    spec.opset = opset;
    spec.output_names = {"out"};
  }
  TestNode& Attr(const std::string& name, Attribute value) {
    spec.attributes.emplace(name, std::move(value));
    return *this;
  }
  TestNode& Input(Tensor tensor) { return Add(std::move(tensor), false); }
  TestNode& Const(Tensor tensor) { return Add(std::move(tensor), true); }
  TestNode& Absent() {
    spec.inputs.push_back({false, {}, DataType::kF32, nullptr});
    spec.input_names.emplace_back();
    values.emplace_back();
    return *this;
  }

  BuiltOp Build() const {
    const OpImporter* importer = FindOpImporter(spec.op_type);
    if (importer == nullptr) throw Error(ErrorCode::kBadModel, "no importer for " + spec.op_type);
    return importer->build(spec);
  }
  Tensor Evaluate() const {
    const BuiltOp built = Build();
    if (!built.nodes.empty()) return EvaluateNodes(built.nodes);
    std::vector<const Tensor*> inputs;
    std::vector<Shape> shapes;
    std::vector<DataType> types;
    for (const int index : built.data_inputs) {
      inputs.push_back(&values[index]);
      shapes.push_back(values[index].shape());
      types.push_back(values[index].type());
    }
    Tensor result = built.op->Reference(inputs);
    EXPECT_EQ(result.shape(), built.op->InferShape(shapes)) << built.op->Signature();
    EXPECT_EQ(result.type(), built.op->OutputType(types)) << built.op->Signature();
    return result;
  }
  std::string Refusal() const {
    try {
      Evaluate();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadModel);
      return error.what();
    }
    return "no error";
  }

  NodeSpec spec;
  std::vector<Tensor> values;

 private:
  // What the importer has written in the node's place, with all inputs as constants.
  Tensor EvaluateNodes(const std::vector<ModelNode>& nodes) const {
    NodeImporter importer(Graph("test"), {"test", spec.opset, nullptr});
    for (size_t i = 0; i < values.size(); ++i) {
      if (!spec.inputs[i].present) continue;
      importer.AddConstant(spec.input_names[i], std::make_shared<const Tensor>(values[i]));
    }
    importer.AddReader("out");
    for (const ModelNode& node : nodes) importer.AddReader(node);
    for (const ModelNode& node : nodes) importer.Add(node);
    return importer.Values({"out"}).front();
  }

  TestNode& Add(Tensor tensor, bool constant) {
    spec.input_names.push_back("in" + std::to_string(spec.inputs.size()));
    spec.inputs.push_back(
        {true, tensor.shape(), tensor.type(), constant ? std::make_shared<const Tensor>(tensor) : nullptr});
    values.push_back(std::move(tensor));
    return *this;
  }
};

using IntList = std::vector<int64_t>;

inline std::vector<float> F(const Tensor& tensor) {
  return {tensor.floats(), tensor.floats() + tensor.size()};
}
// The elements of a tensor of any type.
inline IntList I(const Tensor& tensor) { return ElementsAs<int64_t>(tensor); }

}  // namespace tilesmith
