#include "ops/elementwise/binary.h"

#include <fmt/format.h>

#include <algorithm>

#include "layouts/base/error.h"
#include "ops/base/broadcast.h"
#include "ops/base/import_util.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/elementwise_kernel.h"
#include "ops/movement/view.h"

namespace tilesmith {
namespace {

// Integers wrap around, as a model file may ask for any numbers. Precondition: no division of them by zero.
template <typename T>
T Combine(BinaryKind kind, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    switch (kind) {
      case BinaryKind::kAdd:
        return static_cast<T>(x + y);
      case BinaryKind::kSub:
        return static_cast<T>(x - y);
      case BinaryKind::kMul:
        return static_cast<T>(x * y);
      case BinaryKind::kDiv:
        return std::is_signed_v<T> && b == static_cast<T>(-1) ? static_cast<T>(0 - x) : static_cast<T>(a / b);
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

// x op c or c op x as scale * x + shift; null where that is not the same function (c / x).
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
  }
  return nullptr;
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

bool AllEqual(std::span<const Shape> shapes) {
  return std::ranges::all_of(shapes, [&](const Shape& shape) { return shape == shapes[0]; });
}

}  // namespace

std::string_view BinaryOp::Type() const {
  switch (kind_) {
    case BinaryKind::kAdd:
      return "Add";
    case BinaryKind::kSub:
      return "Sub";
    case BinaryKind::kMul:
      return "Mul";
    case BinaryKind::kDiv:
      return "Div";
  }
  return "";
}

DataType BinaryOp::OutputType(std::span<const DataType> inputs) const {
  const DataType type = SharedType(inputs);
  if (type == DataType::kBool) throw Error(ErrorCode::kBadModel, "bools have no arithmetic");
  return type;
}

Shape BinaryOp::InferShape(std::span<const Shape> inputs) const { return BroadcastAll(Type(), inputs); }

Tensor BinaryOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor &a = *inputs[0], &b = *inputs[1];
  const Shape shapes[] = {a.shape(), b.shape()};
  Tensor out(InferShape(shapes), Layout::Nchw(a.type()));
  const std::vector<int64_t> from_a = BroadcastIndices(a.shape(), out.shape());
  const std::vector<int64_t> from_b = BroadcastIndices(b.shape(), out.shape());
  VisitType(a.type(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const T *const left = a.data<T>(), *const right = b.data<T>();
    if (std::is_integral_v<T> && kind_ == BinaryKind::kDiv &&
        std::find(right, right + b.size(), T{}) != right + b.size()) {
      throw Error(ErrorCode::kBadModel, "Div of integers by zero");
    }
    for (int64_t i = 0; i < out.size(); ++i)
      out.data<T>()[i] = Combine(kind_, left[from_a[i]], right[from_b[i]]);
  });
  return out;
}

double BinaryOp::Flops(std::span<const Shape> inputs) const { return ElementCount(InferShape(inputs)); }

bool BinaryOp::RunsIn(const Layout& layout, std::span<const Shape> inputs) const {
  return layout.is_nchw() || (HasBinaryKernel(inputs) && inputs[0].size() <= 4);
}

std::unique_ptr<Kernel> BinaryOp::MakeKernel(const KernelRequest& request) const {
  if (!HasBinaryKernel(request.inputs)) return Op::MakeKernel(request);
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
  return layout.is_nchw() || (AllEqual(inputs) && inputs[0].size() <= 4);
}

std::unique_ptr<Kernel> SumOp::MakeKernel(const KernelRequest& request) const {
  return AllEqual(request.inputs) ? MakeSumKernel(request) : Op::MakeKernel(request);
}

std::vector<OpImporter> BinaryImporters() {
  return {
      {"Add", BuildBinary<BinaryKind::kAdd>},
      {"Sub", BuildBinary<BinaryKind::kSub>},
      {"Mul", BuildBinary<BinaryKind::kMul>},
      {"Div", BuildBinary<BinaryKind::kDiv>},
      {"Sum", BuildSum},
  };
}

}  // namespace tilesmith
