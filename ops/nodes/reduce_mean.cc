#include "ops/nodes/reduce_mean.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "layouts/base/error.h"
#include "ops/nodes/elements.h"
#include "ops/nodes/import_util.h"
#include "ops/nodes/pool.h"
#include "ops/nodes/view.h"

namespace tilesmith {
namespace {

BuiltOp BuildReduceMean(const NodeSpec& spec) {
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
  if (rank == 4 && axes == std::vector<int64_t>{2, 3}) {
    return BuiltWithInputs(std::make_shared<GlobalPoolOp>(PoolKind::kAverage, keep_dims), 1);
  }
  return BuiltWithInputs(std::make_shared<ReduceMeanOp>(axes, keep_dims), 1);
}

}  // namespace

std::string ReduceMeanOp::Signature() const {
  return fmt::format("ReduceMean [{}]{}", fmt::join(axes_, ","), keep_dims_ ? "" : " squeezed");
}

Shape ReduceMeanOp::InferShape(std::span<const Shape> inputs) const {
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

Tensor ReduceMeanOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor& input = *inputs[0];
  const Shape shapes[] = {input.shape()};
  Tensor output(InferShape(shapes));
  Shape kept = input.shape();
  for (const int64_t axis : axes_) kept[axis] = 1;
  std::vector<int64_t> strides = DenseStrides(kept);
  std::vector<double> sums(output.size());
  for (int64_t i = 0; i < input.size(); ++i) {
    int64_t rest = i, to = 0;
    for (size_t axis = strides.size(); axis-- > 0; rest /= input.shape()[axis]) {
      if (kept[axis] != 1) to += rest % input.shape()[axis] * strides[axis];
    }
    sums[to] += input.floats()[i];
  }
  const double count = sums.empty() ? 1 : static_cast<double>(input.size()) / sums.size();
  for (size_t i = 0; i < sums.size(); ++i) output.floats()[i] = static_cast<float>(sums[i] / count);
  return output;
}

std::vector<OpImporter> ReduceMeanImporters() { return {{"ReduceMean", BuildReduceMean}}; }

}  // namespace tilesmith
