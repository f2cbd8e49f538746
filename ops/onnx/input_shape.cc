#include "ops/onnx/input_shape.h"

#include <fmt/format.h>

#include "layouts/base/error.h"
#include "ops/base/onnx_type.h"

namespace tilesmith {
namespace {

using Dimension = onnx::TensorShapeProto_Dimension;

[[noreturn]] void Fail(const onnx::ValueInfoProto& input, const std::string& reason) {
  throw Error(ErrorCode::kBadModel, fmt::format("input \"{}\": {}", input.name(), reason));
}

// The known sizes of the file, and a plausible one for the others: a flag to copy and correct.
std::string ExampleFlag(const std::string& name, const onnx::TensorShapeProto& shape) {
  Shape example;
  for (int i = 0; i < shape.dim_size(); ++i) {
    const int64_t value = shape.dim(i).dim_value();
    example.push_back(value > 0 ? value : i == 0 ? 1 : i == 1 ? 3 : 224);
  }
  return fmt::format("--input-shape {}={}", name, ShapeToString(example));
}

int64_t ResolveDimension(const onnx::ValueInfoProto& input, int index, const ImportOptions& options) {
  const Dimension& dim = input.type().tensor_type().shape().dim(index);
  if (index == 0 && options.batch) return *options.batch;
  if (dim.has_dim_value() && dim.dim_value() >= 0) return dim.dim_value();
  if (const auto given = options.dims.find(dim.dim_param()); given != options.dims.end())
    return given->second;
  for (const std::string& name : {input.name(), std::string()}) {
    const auto open = options.open_shapes.find(name);
    if (open != options.open_shapes.end() && index < std::ssize(open->second)) return open->second[index];
  }
  if (index == 0) return 1;
  const std::string label = dim.dim_param().empty() ? "" : fmt::format(" (\"{}\")", dim.dim_param());
  Fail(input, fmt::format("dimension {}{} is dynamic; give the shape, for example {}", index, label,
                          ExampleFlag(input.name(), input.type().tensor_type().shape())));
}

}  // namespace

bool MayHaveRankOne(const onnx::ValueInfoProto& input) {
  const onnx::TypeProto_Tensor& type = input.type().tensor_type();
  return !type.has_shape() || type.shape().dim_size() == 1;
}

Shape ResolveInputShape(const onnx::ValueInfoProto& input, const ImportOptions& options) {
  if (!input.type().has_tensor_type()) Fail(input, "it is not a tensor");
  const onnx::TypeProto_Tensor& type = input.type().tensor_type();
  const int rank = type.shape().dim_size();
  Shape shape;
  if (const auto given = options.input_shapes.find(input.name()); given != options.input_shapes.end()) {
    shape = given->second;
    if (type.has_shape() && static_cast<int>(shape.size()) != rank) {
      Fail(input, fmt::format("the shape given, {}, has {} dimensions, the model's has {}",
                              ShapeToString(shape), shape.size(), rank));
    }
  } else if (const auto size = options.dims.find(input.name());
             size != options.dims.end() && MayHaveRankOne(input)) {
    shape = {size->second};
  } else {
    if (!type.has_shape()) {
      Fail(input, fmt::format("the model gives no shape; add --input-shape {}=1x3x224x224", input.name()));
    }
    for (int i = 0; i < rank; ++i) shape.push_back(ResolveDimension(input, i, options));
  }
  for (const int64_t size : shape) {
    if (size < 0) Fail(input, fmt::format("its shape {} must not be negative", ShapeToString(shape)));
  }
  return shape;
}

DataType InputType(const onnx::ValueInfoProto& input) {
  const int32_t number = input.type().tensor_type().elem_type();
  const std::optional<DataType> type = TypeOfOnnx(number);
  if (!type) {
    Fail(input, fmt::format("its elements are {}, which is not supported", OnnxTypeName(number)));
  }
  return *type;
}

}  // namespace tilesmith
