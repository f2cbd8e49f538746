#include "ops/reduce/integer_reduce.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "ops/base/elements.h"
#include "ops/base/import_util.h"

namespace tilesmith {
namespace {

struct IntegerKind {
  IntegerReduceKind kind;
  std::string_view name;
};
constexpr IntegerKind kIntegerKinds[] = {{IntegerReduceKind::kSum, "ReduceSum"},
                                         {IntegerReduceKind::kMean, "ReduceMean"},
                                         {IntegerReduceKind::kMax, "ReduceMax"},
                                         {IntegerReduceKind::kMin, "ReduceMin"},
                                         {IntegerReduceKind::kProduct, "ReduceProd"},
                                         {IntegerReduceKind::kL1, "ReduceL1"},
                                         {IntegerReduceKind::kSumSquare, "ReduceSumSquare"}};

// Sums and products in 64 bits without a sign, which may overflow; of floats in double.
template <typename T>
using Accumulator = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;

template <typename T>
void Take(IntegerReduceKind kind, T value, T& extreme, Accumulator<T>& sum) {
  const auto wide = static_cast<Accumulator<T>>(+value);
  switch (kind) {
    case IntegerReduceKind::kMax:
      if (extreme < value) extreme = value;
      return;
    case IntegerReduceKind::kMin:
      if (value < extreme) extreme = value;
      return;
    case IntegerReduceKind::kProduct:
      sum *= wide;
      return;
    case IntegerReduceKind::kL1:
      if constexpr (std::is_unsigned_v<T>) {
        sum += wide;
      } else {
        sum += value < T(0) ? -wide : wide;
      }
      return;
    case IntegerReduceKind::kSumSquare:
      sum += wide * wide;
      return;
    default:
      sum += wide;
  }
}

// The largest of no numbers is below all others, the smallest above.
template <typename T>
T ExtremeOfNone(IntegerReduceKind kind) {
  const bool max = kind == IntegerReduceKind::kMax;
  if constexpr (std::is_integral_v<T>) {
    return max ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  } else {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return static_cast<T>(max ? -kInfinity : kInfinity);
  }
}

template <typename T>
T Finish(IntegerReduceKind kind, T extreme, Accumulator<T> sum, int64_t count) {
  if (kind == IntegerReduceKind::kMax || kind == IntegerReduceKind::kMin) return extreme;
  if constexpr (std::is_integral_v<T>) {
    if (kind == IntegerReduceKind::kMean) {
      if (count == 0) return 0;  // as ONNX Runtime has it
      return static_cast<T>(std::is_signed_v<T> ? static_cast<uint64_t>(static_cast<int64_t>(sum) / count)
                                                : sum / static_cast<uint64_t>(count));
    }
    return static_cast<T>(sum);
  } else {
    return static_cast<T>(
        static_cast<float>(kind == IntegerReduceKind::kMean ? sum / static_cast<double>(count) : sum));
  }
}

}  // namespace

std::string_view IntegerReduceOp::Type() const {
  return std::ranges::find(kIntegerKinds, kind_, &IntegerKind::kind)->name;
}

std::string IntegerReduceOp::Signature() const {
  return fmt::format("{} of integers [{}]{}", Type(), fmt::join(axes_, ","), keep_dims_ ? "" : " squeezed");
}

Shape IntegerReduceOp::InferShape(std::span<const Shape> inputs) const {
  Shape shape = inputs[0];
  for (size_t i = axes_.size(); i-- > 0;) {
    if (axes_[i] >= std::ssize(inputs[0])) {
      throw Error(ErrorCode::kBadModel, fmt::format("{} of {}", Signature(), ShapeToString(inputs[0])));
    }
    shape[axes_[i]] = 1;
    if (!keep_dims_) shape.erase(shape.begin() + axes_[i]);
  }
  return shape;
}

Tensor IntegerReduceOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor& x = *inputs[0];
  const Shape shapes[] = {x.shape()};
  Tensor out(InferShape(shapes), Layout::Nchw(x.type()));
  Shape kept = x.shape();
  for (const int64_t axis : axes_) kept[axis] = 1;
  std::vector<int64_t> strides = DenseStrides(kept);
  for (const int64_t axis : axes_) strides[axis] = 0;
  VisitType(x.type(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const T* from = x.data<T>();
    const int64_t count = x.size(), results = out.size();
    std::vector<char> started(results, 0);
    std::vector<Accumulator<T>> sums(results, kind_ == IntegerReduceKind::kProduct ? 1 : 0);
    T* extremes = out.data<T>();
    if (count == 0) std::fill_n(extremes, results, ExtremeOfNone<T>(kind_));
    std::vector<int64_t> index(strides.size(), 0);
    int64_t to = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (!started[to]) extremes[to] = from[i], started[to] = 1;
      Take<T>(kind_, from[i], extremes[to], sums[to]);
      for (size_t axis = strides.size(); axis-- > 0;) {
        to += strides[axis];
        if (++index[axis] < x.shape()[axis]) break;
        to -= strides[axis] * x.shape()[axis];
        index[axis] = 0;
      }
    }
    for (int64_t i = 0; i < results; ++i) {
      extremes[i] = Finish<T>(kind_, extremes[i], sums[i], count / results);
    }
  });
  return out;
}

BuiltOp BuildIntegerReduce(const NodeSpec& spec, std::vector<int64_t> axes, bool keep_dims) {
  const auto found = std::ranges::find(kIntegerKinds, spec.op_type, &IntegerKind::name);
  if (found == std::end(kIntegerKinds)) Refuse(spec, "only float inputs are supported");
  return BuiltWithInputs(std::make_shared<IntegerReduceOp>(found->kind, std::move(axes), keep_dims), 1);
}

}  // namespace tilesmith
