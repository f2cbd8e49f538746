#include "ops/movement/shape_arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "layouts/base/error.h"
#include "layouts/convert_transform.h"
#include "layouts/transform.h"
#include "ops/base/elements.h"
#include "ops/base/import_util.h"
#include "ops/base/onnx_type.h"
#include "ops/base/op.h"
#include "ops/base/saved_op.h"
#include "ops/movement/view.h"

namespace tilesmith {
namespace {

BuiltOp BuiltConstant(Tensor value) {
  return {std::make_shared<ConstantOp>(std::make_shared<const Tensor>(std::move(value))), {}};
}

Tensor IntTensor(Shape shape, const std::vector<int64_t>& values) {
  Tensor tensor(std::move(shape), Layout::Nchw(DataType::kI64));
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
  const auto* tensor =
      value == spec.attributes.end() ? nullptr : std::get_if<TensorAttribute>(&value->second);
  if (!tensor) Refuse(spec, "it has no value that is a dense tensor, a number or a list of numbers");
  return {std::make_shared<ConstantOp>(tensor->value()), {}};
}

BuiltOp BuildConstantOfShape(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  const Shape shape = ConstantInts(spec, 0);
  NeedFoldable(spec, shape);
  const auto value = spec.attributes.find("value");
  if (value == spec.attributes.end()) return BuiltConstant(Tensor(shape));
  const auto* attribute = std::get_if<TensorAttribute>(&value->second);
  const Tensor* tensor = attribute ? attribute->value().get() : nullptr;
  if (!tensor || tensor->size() != 1) Refuse(spec, "its value must be a tensor of one element");
  Tensor result(shape, Layout::Nchw(tensor->type()));
  VisitType(result.type(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const T value = *tensor->data<T>();
    if (value != T(0) || std::signbit(static_cast<double>(value)))  // it is zeros already
      std::fill_n(result.data<T>(), result.size(), value);
  });
  return BuiltConstant(std::move(result));
}

BuiltOp BuildRange(const NodeSpec& spec) {
  NeedInputs(spec, 3, 3);
  const DataType type = spec.Constant(0).type();
  if (type != DataType::kF32 && !IsInteger(type)) {
    Refuse(spec, fmt::format("a range of {} is not supported", DataTypeName(type)));
  }
  double bounds[3];
  for (size_t i = 0; i < 3; ++i) {
    if (spec.Constant(i).size() != 1) Refuse(spec, "start, limit and delta must be scalars");
    if (spec.Constant(i).type() != type) Refuse(spec, "its inputs have different types");
    bounds[i] =
        type == DataType::kF32 ? ConstantFloats(spec, i)[0] : static_cast<double>(ConstantInts(spec, i)[0]);
  }
  const auto [start, limit, delta] = bounds;
  const double count = std::max(std::ceil((limit - start) / delta), 0.0);
  if (delta == 0 || !(count <= kMaxTensorElements)) {
    Refuse(spec, fmt::format("impossible range from {} to {} by {}", start, limit, delta));
  }
  NeedFoldable(spec, {static_cast<int64_t>(count)});
  Tensor result({static_cast<int64_t>(count)}, Layout::Nchw(type));
  VisitType(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    T* const out = result.data<T>();
    for (int64_t i = 0; i < result.size(); ++i) {
      if constexpr (std::is_integral_v<T>) {
        const uint64_t first = static_cast<uint64_t>(ConvertElement<int64_t>(start));
        const uint64_t step = static_cast<uint64_t>(ConvertElement<int64_t>(delta));
        out[i] = static_cast<T>(first + static_cast<uint64_t>(i) * step);
      } else {
        out[i] = T(static_cast<float>(start + static_cast<double>(i) * delta));
      }
    }
  });
  return BuiltConstant(std::move(result));
}

BuiltOp CastTo(DataType type, const NodeSpec& spec) {
  if (type == spec.inputs[0].type) return BuiltWithInputs(std::make_shared<ViewOp>("Identity"), 1);
  return BuiltWithInputs(std::make_shared<CastOp>(type), 1);
}

BuiltOp BuildCastLike(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  if (spec.inputs[1].narrow != 0) {
    Refuse(spec, fmt::format("numbers do not become {}", OnnxTypeName(spec.inputs[1].narrow)));
  }
  return CastTo(spec.inputs[1].type, spec);
}

BuiltOp BuildCast(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  const int64_t number = spec.Int("to", 0);
  const std::optional<DataType> type = TypeOfOnnx(number);
  if (!type)
    Refuse(spec, fmt::format("to is {}, an element type that is not supported", OnnxTypeName(number)));
  return CastTo(ComputedType(*type), spec);
}

}  // namespace

// Signatures are part of networks' hashes.
std::string CastOp::Signature() const {
  return to_ == DataType::kF32 ? "Cast float" : fmt::format("Cast {}", DataTypeName(to_));
}

Shape CastOp::InferShape(std::span<const Shape> inputs) const { return inputs[0]; }

Tensor CastOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor& input = *inputs[0];
  Tensor output(input.shape(), Layout::Nchw(to_));
  VisitType(to_, [&](auto to) {
    using To = typename decltype(to)::Type;
    VisitType(input.type(), [&](auto from) {
      using From = typename decltype(from)::Type;
      const From* const in = input.data<From>();
      std::transform(in, in + input.size(), output.data<To>(),
                     [](From value) { return ConvertElement<To>(value); });
    });
  });
  return output;
}

std::unique_ptr<Kernel> CastOp::MakeKernel(const KernelRequest& request) const {
  return MakeTransformKernel(request.output, Layout::Nchw(request.InputType(0)), Layout::Nchw(to_),
                             request.cpu);
}

bool CastOp::KernelTakes(std::span<const DataType> inputs) const { return AreConverted(inputs[0], to_); }

// Shape, Size, Constant, ConstantOfShape, Range, Cast, CastLike.
std::vector<OpImporter> ShapeArithmeticImporters() {
  return {{"Shape", BuildShape},       {"Size", BuildSize},
          {"Constant", BuildConstant}, {"ConstantOfShape", BuildConstantOfShape},
          {"Range", BuildRange},       {"Cast", BuildCast},
          {"CastLike", BuildCastLike}};
}

std::vector<SavedOp> ShapeArithmeticOps() { return {Saved<CastOp>("Cast")}; }

}  // namespace tilesmith
