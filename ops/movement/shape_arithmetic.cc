#include "ops/movement/shape_arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "layouts/base/error.h"
#include "ops/base/elements.h"
#include "ops/base/import_util.h"
#include "ops/base/input.h"

namespace tilesmith {
namespace {

// Toward zero; what no integer can hold becomes the nearest that fits, NaN becomes 0.
int64_t Truncated(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return std::numeric_limits<int64_t>::max();
  if (value < -0x1p63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

BuiltOp BuiltConstant(Tensor value) {
  return {std::make_shared<ConstantOp>(std::make_shared<const Tensor>(std::move(value))), {}};
}

Tensor IntTensor(Shape shape, const std::vector<int64_t>& values) {
  Tensor tensor(std::move(shape), Layout::Nchw(), DataType::kI64);
  std::ranges::copy(values, tensor.ints());
  return tensor;
}

Tensor FloatTensor(Shape shape, const std::vector<float>& values) {
  Tensor tensor(std::move(shape));
  std::ranges::copy(values, tensor.floats());
  return tensor;
}

BuiltOp BuildShape(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  const Shape& shape = spec.inputs[0].shape;
  const int64_t rank = static_cast<int64_t>(shape.size());
  const auto bound = [rank](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t start = bound(spec.Int("start", 0)), end = std::max(start, bound(spec.Int("end", rank)));
  return BuiltConstant(IntTensor({end - start}, Shape(shape.begin() + start, shape.begin() + end)));
}

BuiltOp BuildSize(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  return BuiltConstant(IntTensor({}, {ElementCount(spec.inputs[0].shape)}));
}

BuiltOp BuildConstant(const NodeSpec& spec) {
  if (spec.Has("value_int")) return BuiltConstant(IntTensor({}, {spec.Int("value_int", 0)}));
  if (spec.Has("value_float")) return BuiltConstant(FloatTensor({}, {spec.Float("value_float", 0)}));
  if (spec.Has("value_ints")) {
    const std::vector<int64_t> values = spec.Ints("value_ints", {});
    return BuiltConstant(IntTensor({static_cast<int64_t>(values.size())}, values));
  }
  if (spec.Has("value_floats")) {
    const std::vector<float> values = spec.Floats("value_floats", {});
    return BuiltConstant(FloatTensor({static_cast<int64_t>(values.size())}, values));
  }
  const auto value = spec.attributes.find("value");
  const Tensor* tensor = value == spec.attributes.end() ? nullptr : std::get_if<Tensor>(&value->second);
  if (!tensor) Refuse(spec, "it has no value that is a dense tensor, a number or a list of numbers");
  return BuiltConstant(*tensor);
}

BuiltOp BuildConstantOfShape(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  const Shape shape = ConstantInts(spec, 0);
  NeedFoldable(spec, shape);
  const auto value = spec.attributes.find("value");
  if (value == spec.attributes.end()) return BuiltConstant(Tensor(shape));
  const Tensor* tensor = std::get_if<Tensor>(&value->second);
  if (!tensor || tensor->size() != 1) Refuse(spec, "its value must be a tensor of one element");
  Tensor result(shape, Layout::Nchw(), tensor->type());
  GatherElements(*tensor, result, [](int64_t) { return 0; });
  return BuiltConstant(std::move(result));
}

BuiltOp BuildRange(const NodeSpec& spec) {
  NeedInputs(spec, 3, 3);
  const bool floats = spec.Constant(0).type() == DataType::kF32;
  double bounds[3];
  for (size_t i = 0; i < 3; ++i) {
    if (spec.Constant(i).size() != 1) Refuse(spec, "start, limit and delta must be scalars");
    bounds[i] = floats ? ConstantFloats(spec, i)[0] : static_cast<double>(ConstantInts(spec, i)[0]);
  }
  const auto [start, limit, delta] = bounds;
  const double count = std::max(std::ceil((limit - start) / delta), 0.0);
  if (delta == 0 || !(count <= kMaxTensorElements)) {
    Refuse(spec, fmt::format("impossible range from {} to {} by {}", start, limit, delta));
  }
  NeedFoldable(spec, {static_cast<int64_t>(count)});
  Tensor result({static_cast<int64_t>(count)}, Layout::Nchw(), floats ? DataType::kF32 : DataType::kI64);
  for (int64_t i = 0; i < result.size(); ++i) {
    if (floats) {
      result.floats()[i] = static_cast<float>(start + i * delta);
    } else {
      const uint64_t step = static_cast<uint64_t>(i) * static_cast<uint64_t>(Truncated(delta));
      result.ints()[i] = static_cast<int64_t>(static_cast<uint64_t>(Truncated(start)) + step);
    }
  }
  return BuiltConstant(std::move(result));
}

// ONNX's TensorProto.DataType.
BuiltOp BuildCast(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  const int64_t to = spec.Int("to", 0);
  switch (to) {
    case 1:   // float
    case 11:  // double
      return BuiltWithInputs(std::make_shared<CastOp>(DataType::kF32, false), 1);
    case 6:  // int32
    case 7:  // int64
      return BuiltWithInputs(std::make_shared<CastOp>(DataType::kI64, false), 1);
    case 9:  // bool
      return BuiltWithInputs(std::make_shared<CastOp>(DataType::kI64, true), 1);
    default:
      Refuse(spec,
             fmt::format("to is {}, supported are 1 (float), 6 and 7 (int), 9 (bool), 11 (double)", to));
  }
}

}  // namespace

std::string CastOp::Signature() const {
  return to_ == DataType::kF32 ? "Cast float" : to_bool_ ? "Cast bool" : "Cast int";
}

Shape CastOp::InferShape(std::span<const Shape> inputs) const { return inputs[0]; }

Tensor CastOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor& input = *inputs[0];
  Tensor output(input.shape(), Layout::Nchw(), to_);
  const bool from_floats = input.type() == DataType::kF32;
  for (int64_t i = 0; i < input.size(); ++i) {
    if (to_ == DataType::kF32) {
      output.floats()[i] = from_floats ? input.floats()[i] : static_cast<float>(input.ints()[i]);
    } else if (to_bool_) {
      output.ints()[i] = from_floats ? input.floats()[i] != 0 : input.ints()[i] != 0;
    } else {
      output.ints()[i] = from_floats ? Truncated(input.floats()[i]) : input.ints()[i];
    }
  }
  return output;
}

std::vector<OpImporter> ShapeArithmeticImporters() {
  return {{"Shape", BuildShape},       {"Size", BuildSize},
          {"Constant", BuildConstant}, {"ConstantOfShape", BuildConstantOfShape},
          {"Range", BuildRange},       {"Cast", BuildCast}};
}

}  // namespace tilesmith
