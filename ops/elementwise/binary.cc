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

float Combine(BinaryKind kind, float a, float b) {
  switch (kind) {
    case BinaryKind::kAdd:
      return a + b;
    case BinaryKind::kSub:
      return a - b;
    case BinaryKind::kMul:
      return a * b;
    case BinaryKind::kDiv:
      return a / b;
  }
  return a;
}

// Wraps around, as a model file may ask for any numbers. Precondition: no division by zero.
int64_t Combine(BinaryKind kind, int64_t a, int64_t b) {
  const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (kind) {
    case BinaryKind::kAdd:
      return static_cast<int64_t>(x + y);
    case BinaryKind::kSub:
      return static_cast<int64_t>(x - y);
    case BinaryKind::kMul:
      return static_cast<int64_t>(x * y);
    case BinaryKind::kDiv:
      return b == -1 ? static_cast<int64_t>(0 - x) : a / b;
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

template <typename T>
void CombineAll(BinaryKind kind, const T* a, const T* b, const Shape& a_shape, const Shape& b_shape,
                Tensor& out, T* result) {
  const std::vector<int64_t> from_a = BroadcastIndices(a_shape, out.shape());
  const std::vector<int64_t> from_b = BroadcastIndices(b_shape, out.shape());
  for (int64_t i = 0; i < out.size(); ++i) result[i] = Combine(kind, a[from_a[i]], b[from_b[i]]);
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

Shape BinaryOp::InferShape(std::span<const Shape> inputs) const { return BroadcastAll(Type(), inputs); }

Tensor BinaryOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor &a = *inputs[0], &b = *inputs[1];
  const Shape shapes[] = {a.shape(), b.shape()};
  Tensor out(InferShape(shapes), Layout::Nchw(), a.type());
  if (a.type() == DataType::kF32) {
    CombineAll(kind_, a.floats(), b.floats(), a.shape(), b.shape(), out, out.floats());
    return out;
  }
  if (kind_ == BinaryKind::kDiv && std::find(b.ints(), b.ints() + b.size(), 0) != b.ints() + b.size()) {
    throw Error(ErrorCode::kBadModel, "Div of integers by zero");
  }
  CombineAll(kind_, a.ints(), b.ints(), a.shape(), b.shape(), out, out.ints());
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
