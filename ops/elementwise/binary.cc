#include "ops/elementwise/binary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "layouts/base/error.h"
#include "ops/base/broadcast.h"
#include "ops/base/elementary.h"
#include "ops/base/elements.h"
#include "ops/base/import_util.h"
#include "ops/base/node_writer.h"
#include "ops/base/rounding.h"
#include "ops/base/saved_op.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/elementwise_kernel.h"
#include "ops/elementwise/functions.h"
#include "ops/movement/view.h"

namespace tilesmith {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct NamedBinary {
  BinaryKind kind;
  std::string_view name;  // ONNX's
};
constexpr NamedBinary kBinaryNames[] = {{BinaryKind::kAdd, "Add"}, {BinaryKind::kSub, "Sub"},
                                        {BinaryKind::kMul, "Mul"}, {BinaryKind::kDiv, "Div"},
                                        {BinaryKind::kPow, "Pow"}, {BinaryKind::kMin, "Min"},
                                        {BinaryKind::kMax, "Max"}, {BinaryKind::kPRelu, "PRelu"}};

// Modulo 2^64. Precondition: the exponent is no less than 0.
uint64_t IntegerPower(uint64_t base, uint64_t exponent) {
  uint64_t power = 1;
  for (; exponent != 0; exponent >>= 1, base *= base)
    if (exponent & 1) power *= base;
  return power;
}

// Integers wrap around, as a model file may ask for any numbers. Precondition: no division of them by zero.
template <typename T>
T Combine(BinaryKind kind, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<uint64_t>(+a), y = static_cast<uint64_t>(+b);
    switch (kind) {
      case BinaryKind::kAdd:
        return static_cast<T>(x + y);
      case BinaryKind::kSub:
        return static_cast<T>(x - y);
      case BinaryKind::kMul:
        return static_cast<T>(x * y);
      case BinaryKind::kDiv:
        return std::is_signed_v<T> && b == static_cast<T>(-1) ? static_cast<T>(0 - x) : static_cast<T>(a / b);
      case BinaryKind::kPow:
        if (std::is_signed_v<T> && b < T{0}) {
          const bool even = b % 2 == 0;
          return a == T{1} ? T{1} : a == static_cast<T>(-1) ? static_cast<T>(even ? 1 : -1) : T{0};
        }
        return static_cast<T>(IntegerPower(x, y));
      case BinaryKind::kMin:
        return std::min(a, b);
      case BinaryKind::kMax:
        return std::max(a, b);
      case BinaryKind::kPRelu:
        return a >= T{0} ? a : static_cast<T>(x * y);
    }
  } else {
    const float x = a, y = b;
    switch (kind) {
      case BinaryKind::kAdd:
        return T(x + y);
      case BinaryKind::kSub:
        return T(x - y);
      case BinaryKind::kMul:
        return T(x * y);
      case BinaryKind::kDiv:
        return T(x / y);
      case BinaryKind::kPow:
        return ConvertElement<T>(elementary::Pow(static_cast<double>(x), static_cast<double>(y)));
      case BinaryKind::kMin:
        return x < y || std::isnan(x) ? a : b;
      case BinaryKind::kMax:
        return x > y || std::isnan(x) ? a : b;
      case BinaryKind::kPRelu:
        return x >= 0 ? a : T(x * y);
    }
  }
  return a;
}

// The constant as one value per channel of `shape`, or empty when it varies along another axis.
std::vector<float> PerChannel(const Tensor& constant, const Shape& shape) {
  const Shape& from = constant.shape();
  if (constant.type() != DataType::kF32 || from.size() > shape.size() || shape.size() < 2) return {};
  const size_t lead = shape.size() - from.size();
  for (size_t axis = 0; axis < from.size(); ++axis) {
    if (from[axis] == 1) continue;
    if (axis + lead != 1 || from[axis] != shape[1]) return {};
  }
  if (constant.size() == 1) return std::vector<float>(shape[1], constant.floats()[0]);
  return {constant.floats(), constant.floats() + constant.size()};
}

// x op c or c op x as scale * x + shift; null where that is not the same function, as for c / x.
OpPtr AsScaleShift(BinaryKind kind, std::vector<float> constant, bool constant_first) {
  std::vector<float> zeros(constant.size(), 0.0f), ones(constant.size(), 1.0f);
  switch (kind) {
    case BinaryKind::kAdd:
      return std::make_shared<ScaleShiftOp>(std::move(ones), std::move(constant));
    case BinaryKind::kMul:
      return std::make_shared<ScaleShiftOp>(std::move(constant), std::move(zeros));
    case BinaryKind::kSub:
      if (constant_first) {
        std::ranges::fill(ones, -1.0f);
      } else {
        for (float& value : constant) value = -value;
      }
      return std::make_shared<ScaleShiftOp>(std::move(ones), std::move(constant));
    case BinaryKind::kDiv:
      if (constant_first) return nullptr;
      for (float& value : constant) value = 1 / value;
      return std::make_shared<ScaleShiftOp>(std::move(constant), std::move(zeros));
    default:
      return nullptr;
  }
}

// The only element of a constant input; nullopt when it is none.
std::optional<float> ConstantScalar(const NodeSpec& spec, size_t index) {
  const NodeInput& input = spec.inputs[index];
  if (!input.constant || input.constant->size() != 1) return std::nullopt;
  return ConstantFloats(spec, index)[0];
}

template <BinaryKind kKind>
BuiltOp BuildBinary(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  if (spec.inputs[0].type != spec.inputs[1].type) Refuse(spec, "its inputs have different types");
  for (const int constant : {1, 0}) {
    const NodeInput& x = spec.inputs[1 - constant];
    if (!spec.inputs[constant].constant || x.constant || x.type != DataType::kF32) continue;
    std::vector<float> values = PerChannel(*spec.inputs[constant].constant, x.shape);
    if (values.empty()) continue;
    if (OpPtr op = AsScaleShift(kKind, std::move(values), constant == 0)) return {op, {1 - constant}};
  }
  return BuiltWithInputs(std::make_shared<BinaryOp>(kKind), 2);
}

BuiltOp BuildSum(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1 << 16);
  if (spec.inputs.size() == 1) return BuiltWithInputs(std::make_shared<ViewOp>("Identity"), 1);
  if (spec.inputs.size() == 2) return BuildBinary<BinaryKind::kAdd>(spec);
  return BuiltWithInputs(std::make_shared<SumOp>(), static_cast<int>(spec.inputs.size()));
}

// The result has the base's type; a fraction as the exponent of an integer needs floats in between.
BuiltOp BuildPowOfTwoTypes(const NodeSpec& spec) {
  NodeWriter writer(spec);
  if (IsInteger(spec.inputs[0].type) && !IsInteger(spec.inputs[1].type)) {
    const std::string base = writer.Add("CastLike", {writer.In(0), writer.In(1)});
    writer.Add("CastLike", {writer.Add("Pow", {base, writer.In(1)}), writer.In(0)}, {}, writer.Out(0));
  } else {
    const std::string exponent = writer.Add("CastLike", {writer.In(1), writer.In(0)});
    writer.Add("Pow", {writer.In(0), exponent}, {}, writer.Out(0));
  }
  return writer.Take();
}

BuiltOp BuildPow(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  const bool broadcasts = spec.inputs[1].shape.size() > spec.inputs[0].shape.size();
  if (spec.inputs[0].type == DataType::kF32 && !broadcasts) {
    const std::optional<float> exponent = ConstantScalar(spec, 1);
    if (exponent == 1.0f) return BuiltWithInputs(std::make_shared<ViewOp>("Identity"), 1);
    if (exponent == 2.0f) return {std::make_shared<BinaryOp>(BinaryKind::kMul), {0, 0}};
    if (exponent == 0.5f)
      return BuiltWithInputs(std::make_shared<FunctionOp>(Function{FunctionKind::kSqrt}), 1);
  }
  if (spec.inputs[0].type != spec.inputs[1].type) return BuildPowOfTwoTypes(spec);
  return BuiltWithInputs(std::make_shared<BinaryOp>(BinaryKind::kPow), 2);
}

BuiltOp BuildMean(const NodeSpec& spec) {
  NodeWriter writer(spec);
  const std::string sum = writer.Add("Sum", spec.input_names);
  writer.Add("Div", {sum, writer.Float(static_cast<float>(spec.inputs.size()))}, {}, writer.Out(0));
  return writer.Take();
}

BuiltOp BuildMinMax(const NodeSpec& spec, BinaryKind kind) {
  NeedInputs(spec, 1, 1 << 16);
  if (spec.inputs.size() == 1) return BuiltWithInputs(std::make_shared<ViewOp>("Identity"), 1);
  for (const int constant : {1, 0}) {
    if (spec.inputs.size() > 2 || spec.inputs[0].type != DataType::kF32) break;
    const NodeInput &bound = spec.inputs[constant], &x = spec.inputs[1 - constant];
    const std::optional<float> value = ConstantScalar(spec, constant);
    if (!value || x.constant || bound.shape.size() > x.shape.size()) continue;
    const bool is_max = kind == BinaryKind::kMax;
    const Activation clip =
        is_max && *value == 0
            ? Activation{ActivationKind::kRelu}
            : Activation{ActivationKind::kClip, is_max ? *value : -kInfinity, is_max ? kInfinity : *value};
    return {std::make_shared<ActivationOp>(clip), {1 - constant}};
  }
  return BuiltWithInputs(std::make_shared<BinaryOp>(kind), static_cast<int>(spec.inputs.size()));
}

bool AreAlike(std::span<const Shape> shapes) {
  return std::ranges::all_of(shapes, [&](const Shape& shape) { return shape == shapes[0]; });
}

}  // namespace

std::string_view BinaryOp::Type() const {
  return std::ranges::find(kBinaryNames, kind_, &NamedBinary::kind)->name;
}

Shape BinaryOp::InferShape(std::span<const Shape> inputs) const {
  Shape shape = BroadcastAll(Type(), inputs);
  if (kind_ == BinaryKind::kPRelu && shape != inputs[0]) {
    throw Error(ErrorCode::kBadModel, fmt::format("slopes {} do not broadcast to the input {}",
                                                  ShapeToString(inputs[1]), ShapeToString(inputs[0])));
  }
  return shape;
}

DataType BinaryOp::OutputType(std::span<const DataType> inputs) const {
  const DataType type = SharedType(inputs);
  if (type == DataType::kBool) throw Error(ErrorCode::kBadModel, "bools have no arithmetic");
  return type;
}

Tensor BinaryOp::Reference(std::span<const Tensor* const> inputs) const {
  std::vector<Shape> shapes;
  for (const Tensor* input : inputs) shapes.push_back(input->shape());
  Tensor out(InferShape(shapes), Layout::Nchw(inputs[0]->type()));
  const std::vector<int64_t> first = BroadcastIndices(shapes[0], out.shape());
  GatherElements(*inputs[0], out, [&](int64_t i) { return first[i]; });
  VisitType(out.type(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    T* const result = out.data<T>();
    for (size_t slot = 1; slot < inputs.size(); ++slot) {
      const T* const b = inputs[slot]->data<T>();
      if (std::is_integral_v<T> && kind_ == BinaryKind::kDiv &&
          std::find(b, b + inputs[slot]->size(), T{}) != b + inputs[slot]->size()) {
        throw Error(ErrorCode::kBadModel, "Div of integers by zero");
      }
      const std::vector<int64_t> from = BroadcastIndices(shapes[slot], out.shape());
      for (int64_t i = 0; i < out.size(); ++i) result[i] = Combine(kind_, result[i], b[from[i]]);
    }
  });
  return out;
}

double BinaryOp::Flops(std::span<const Shape> inputs) const {
  return static_cast<double>(inputs.size() - 1) * static_cast<double>(ElementCount(InferShape(inputs)));
}

bool BinaryOp::RunsIn(const Layout& layout, std::span<const Shape> inputs) const {
  return BroadcastsIn(layout, inputs, InferShape(inputs));
}

std::unique_ptr<Kernel> BinaryOp::MakeKernel(const KernelRequest& request) const {
  return MakeBinaryKernel(request, kind_);
}

Shape SumOp::InferShape(std::span<const Shape> inputs) const { return BroadcastAll("Sum", inputs); }

Tensor SumOp::Reference(std::span<const Tensor* const> inputs) const {
  std::vector<Shape> shapes;
  for (const Tensor* input : inputs) shapes.push_back(input->shape());
  Tensor output(InferShape(shapes));
  std::vector<double> sums(output.size());
  for (const Tensor* input : inputs) {
    const std::vector<int64_t> from = BroadcastIndices(input->shape(), output.shape());
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += input->floats()[from[i]];
  }
  std::copy(sums.begin(), sums.end(), output.floats());
  return output;
}

double SumOp::Flops(std::span<const Shape> inputs) const {
  return static_cast<double>(inputs.size() - 1) * ElementCount(InferShape(inputs));
}

bool SumOp::RunsIn(const Layout& layout, std::span<const Shape> inputs) const {
  return layout == Layout::Nchw() || (AreAlike(inputs) && inputs[0].size() <= 4);
}

std::unique_ptr<Kernel> SumOp::MakeKernel(const KernelRequest& request) const {
  return AreAlike(request.inputs) ? MakeSumKernel(request) : Op::MakeKernel(request);
}

// Add, Sub, Mul, Div, Pow, Min, Max, Sum (of one input: Identity; of two: Add). A Pow by a constant 1, 2 or
// 1/2 is an Identity, a Mul or a Sqrt; Min and Max of two with a constant scalar are a Clip.
std::vector<OpImporter> BinaryImporters() {
  return {
      {"Add", BuildBinary<BinaryKind::kAdd>},
      {"Sub", BuildBinary<BinaryKind::kSub>},
      {"Mul", BuildBinary<BinaryKind::kMul>},
      {"Div", BuildBinary<BinaryKind::kDiv>},
      {"Pow", BuildPow},
      {"Min", [](const NodeSpec& spec) { return BuildMinMax(spec, BinaryKind::kMin); }},
      {"Max", [](const NodeSpec& spec) { return BuildMinMax(spec, BinaryKind::kMax); }},
      {"Sum", BuildSum},
      {"Mean", BuildMean},
  };
}

Tensor SumOp::RoundingBound(const OpRun& run) const {
  return BoundsOf(OfAbsolutes(*this, run.inputs), static_cast<double>(run.inputs.size()));
}

std::vector<SavedOp> BinaryOps() { return {Saved<BinaryOp>("Binary"), Saved<SumOp>("Sum")}; }

}  // namespace tilesmith
