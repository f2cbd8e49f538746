#include "ops/reduce/reduce.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "layouts/base/error.h"
#include "ops/base/elements.h"
#include "ops/base/import_util.h"
#include "ops/movement/view.h"
#include "ops/pool/pool.h"
#include "ops/reduce/reduce_kernel.h"

namespace tilesmith {
namespace {

struct NamedKind {
  ReduceKind kind;
  std::string_view name;
};
constexpr NamedKind kNames[] = {
    {ReduceKind::kMean, "ReduceMean"},     {ReduceKind::kSum, "ReduceSum"},
    {ReduceKind::kMax, "ReduceMax"},       {ReduceKind::kMin, "ReduceMin"},
    {ReduceKind::kProduct, "ReduceProd"},  {ReduceKind::kL1, "ReduceL1"},
    {ReduceKind::kL2, "ReduceL2"},         {ReduceKind::kSumSquare, "ReduceSumSquare"},
    {ReduceKind::kLogSum, "ReduceLogSum"}, {ReduceKind::kLogSumExp, "ReduceLogSumExp"}};

// As GlobalPoolOp has it; nullopt for the others.
std::optional<PoolKind> PoolOf(ReduceKind kind) {
  if (kind == ReduceKind::kMean) return PoolKind::kAverage;
  if (kind == ReduceKind::kMax) return PoolKind::kMax;
  return std::nullopt;
}

BuiltOp BuildReduce(const NodeSpec& spec, ReduceKind kind) {
  NeedInputs(spec, 1, 2);
  if (spec.inputs[0].type != DataType::kF32) Refuse(spec, "only float inputs are supported");
  const size_t rank = spec.inputs[0].shape.size();
  std::vector<int64_t> axes =
      NormalAxes(spec, IntsFromAttributeOrInput(spec, "axes", 1).value_or(std::vector<int64_t>()), rank);
  if (axes.empty()) {
    if (spec.Int("noop_with_empty_axes", 0) != 0) {
      return BuiltWithInputs(std::make_shared<ViewOp>("Identity"), 1);
    }
    for (size_t axis = 0; axis < rank; ++axis) axes.push_back(static_cast<int64_t>(axis));
  }
  const bool keep_dims = spec.Int("keepdims", 1) != 0;
  const std::optional<PoolKind> pool = PoolOf(kind);
  if (pool && rank == 4 && axes == std::vector<int64_t>{2, 3}) {
    return BuiltWithInputs(std::make_shared<GlobalPoolOp>(*pool, keep_dims), 1);
  }
  return BuiltWithInputs(std::make_shared<ReduceOp>(kind, axes, keep_dims), 1);
}

double Start(ReduceKind kind) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (kind == ReduceKind::kMax) return -kInfinity;
  if (kind == ReduceKind::kMin) return kInfinity;
  return kind == ReduceKind::kProduct ? 1 : 0;
}

void Take(ReduceKind kind, double value, double& result) {
  switch (kind) {
    case ReduceKind::kMean:
    case ReduceKind::kSum:
    case ReduceKind::kLogSum:
      result += value;
      return;
    case ReduceKind::kMax:
      if (value > result) result = value;
      return;
    case ReduceKind::kMin:
      if (value < result) result = value;
      return;
    case ReduceKind::kProduct:
      result *= value;
      return;
    case ReduceKind::kL1:
      result += std::abs(value);
      return;
    case ReduceKind::kL2:
    case ReduceKind::kSumSquare:
      result += value * value;
      return;
    case ReduceKind::kLogSumExp:
      result += std::exp(value);
      return;
  }
}

double Finish(ReduceKind kind, double result, double count) {
  if (kind == ReduceKind::kMean) return result / count;
  if (kind == ReduceKind::kL2) return std::sqrt(result);
  return kind == ReduceKind::kLogSum || kind == ReduceKind::kLogSumExp ? std::log(result) : result;
}

}  // namespace

std::string_view ReduceOp::Type() const { return std::ranges::find(kNames, kind_, &NamedKind::kind)->name; }

std::string ReduceOp::Signature() const {
  return fmt::format("{} [{}]{}", Type(), fmt::join(axes_, ","), keep_dims_ ? "" : " squeezed");
}

Shape ReduceOp::InferShape(std::span<const Shape> inputs) const {
  Shape shape = inputs[0];
  for (size_t i = axes_.size(); i-- > 0;) {
    if (axes_[i] >= static_cast<int64_t>(inputs[0].size())) {
      throw Error(ErrorCode::kBadModel, fmt::format("{} of {}", Signature(), ShapeToString(inputs[0])));
    }
    shape[axes_[i]] = 1;
    if (!keep_dims_) shape.erase(shape.begin() + axes_[i]);
  }
  return shape;
}

Tensor ReduceOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor& input = *inputs[0];
  const Shape shapes[] = {input.shape()};
  Tensor output(InferShape(shapes));
  Shape kept = input.shape();
  for (const int64_t axis : axes_) kept[axis] = 1;
  const std::vector<int64_t> strides = DenseStrides(kept);
  const auto take_all = [&](ReduceKind kind, const std::vector<double>& shifts,
                            std::vector<double>& results) {
    for (int64_t i = 0; i < input.size(); ++i) {
      int64_t rest = i, to = 0;
      for (size_t axis = strides.size(); axis-- > 0; rest /= input.shape()[axis]) {
        if (kept[axis] != 1) to += rest % input.shape()[axis] * strides[axis];
      }
      Take(kind, input.floats()[i] - shifts[to], results[to]);
    }
  };
  std::vector<double> shifts(output.size(), 0.0), results(output.size(), Start(kind_));
  if (kind_ == ReduceKind::kLogSumExp) {
    std::vector<double> largest(output.size(), Start(ReduceKind::kMax));
    take_all(ReduceKind::kMax, shifts, largest);
    std::ranges::transform(largest, shifts.begin(), [](double x) { return std::isfinite(x) ? x : 0; });
  }
  take_all(kind_, shifts, results);
  const double count = results.empty() ? 1 : static_cast<double>(input.size()) / results.size();
  for (size_t i = 0; i < results.size(); ++i)
    output.floats()[i] = static_cast<float>(Finish(kind_, results[i], count) + shifts[i]);
  return output;
}

std::unique_ptr<Kernel> ReduceOp::MakeKernel(const KernelRequest& request) const {
  return MakeReduceKernel(request, *this);
}

std::vector<OpImporter> ReduceImporters() {
  std::vector<OpImporter> importers;
  for (const NamedKind& named : kNames) {
    importers.push_back(
        {named.name, [kind = named.kind](const NodeSpec& spec) { return BuildReduce(spec, kind); }});
  }
  return importers;
}

}  // namespace tilesmith
