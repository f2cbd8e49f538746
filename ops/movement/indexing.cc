#include "ops/movement/indexing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "layouts/base/error.h"
#include "ops/base/broadcast.h"
#include "ops/base/elements.h"
#include "ops/base/import_util.h"
#include "ops/movement/copying.h"
#include "ops/movement/gather_kernel.h"
#include "ops/movement/strided_copy.h"

namespace tilesmith {
namespace {

BuiltOp BuildGather(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  const int64_t axis = NormalAxis(spec, spec.Int("axis", 0), spec.inputs[0].shape.size());
  return BuiltWithInputs(std::make_shared<GatherOp>(axis), 2);
}

BuiltOp BuildSlice(const NodeSpec& spec) {
  NeedInputs(spec, 1, 5);
  const size_t rank = spec.inputs[0].shape.size();
  const auto starts = IntsFromAttributeOrInput(spec, "starts", 1);
  const auto ends = IntsFromAttributeOrInput(spec, "ends", 2);
  if (!starts || !ends || starts->size() != ends->size()) Refuse(spec, "starts and ends do not match");
  std::vector<int64_t> axes(starts->size()), steps(starts->size(), 1);
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  axes = IntsFromAttributeOrInput(spec, "axes", 3).value_or(axes);
  if (spec.HasInput(4)) steps = ConstantInts(spec, 4);
  if (axes.size() != starts->size() || steps.size() != starts->size()) {
    Refuse(spec, "starts, axes and steps have different lengths");
  }
  std::vector<SliceRange> ranges;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] == 0) Refuse(spec, "a step is 0");
    ranges.push_back({NormalAxis(spec, axes[i], rank), (*starts)[i], (*ends)[i], steps[i]});
  }
  return BuiltWithInputs(std::make_shared<SliceOp>(std::move(ranges)), 1);
}

BuiltOp BuildExpand(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  return BuiltWithInputs(std::make_shared<ExpandOp>(ConstantInts(spec, 1)), 1);
}

// Sizes of the parts along an axis of `size`: as listed, or even ones of which the last may be smaller.
std::vector<int64_t> SplitSizes(const NodeSpec& spec, int64_t size) {
  const int64_t parts = spec.Int("num_outputs", spec.outputs);
  if (parts != spec.outputs) Refuse(spec, fmt::format("{} outputs, num_outputs is {}", spec.outputs, parts));
  std::vector<int64_t> sizes = IntsFromAttributeOrInput(spec, "split", 1).value_or(std::vector<int64_t>());
  if (sizes.empty()) {
    const int64_t even = (size + parts - 1) / parts;
    for (int64_t rest = size; static_cast<int64_t>(sizes.size()) < parts; rest -= sizes.back())
      sizes.push_back(std::min(even, rest));
  }
  int64_t sum = 0;
  for (const int64_t part : sizes) sum = part < 0 || sum < 0 || part > size - sum ? -1 : sum + part;
  if (sum != size || static_cast<int64_t>(sizes.size()) != parts) {
    Refuse(spec,
           fmt::format("splits {} elements into {} outputs of {}", size, parts, fmt::join(sizes, ", ")));
  }
  return sizes;
}

BuiltOp BuildSplit(const NodeSpec& spec) {
  NeedInputs(spec, 1, 2);
  const Shape& shape = spec.inputs[0].shape;
  const int64_t axis = NormalAxis(spec, spec.Int("axis", 0), shape.size());
  const std::vector<int64_t> sizes = SplitSizes(spec, shape[axis]);
  int64_t start = 0;
  for (int i = 0; i < spec.output; ++i) start += sizes[i];
  const SliceRange range{axis, start, start + sizes[spec.output], 1};
  return BuiltWithInputs(std::make_shared<SliceOp>(std::vector<SliceRange>{range}), 1);
}

// A step beyond the size is as good as the size + 1, and cannot overflow.
SliceAxis Resolve(const SliceRange& range, int64_t size) {
  if (size == 0) return {};
  const auto clamp = [&](int64_t at, int64_t low, int64_t high) {
    return std::clamp(at < 0 ? std::max(at, -size - 1) + size : at, low, high);
  };
  if (range.step > 0) {
    const int64_t start = clamp(range.start, 0, size), end = clamp(range.end, 0, size);
    const int64_t step = std::min(range.step, size + 1);
    return {start, step, end <= start ? 0 : (end - start - 1) / step + 1};
  }
  const int64_t start = clamp(range.start, 0, size - 1);
  const int64_t end = clamp(range.end, -1, size - 1);
  const int64_t step = std::max(range.step, -size - 1);
  return {start, step, start <= end ? 0 : (start - end - 1) / -step + 1};
}

}  // namespace

std::string GatherOp::Signature() const { return fmt::format("Gather axis {}", axis_); }

DataType GatherOp::OutputType(std::span<const DataType> inputs) const {
  if (!IsInteger(inputs[1])) throw Error(ErrorCode::kBadModel, "its indices must be integers");
  return inputs[0];
}

Shape GatherOp::InferShape(std::span<const Shape> inputs) const {
  const Shape& data = inputs[0];
  if (axis_ >= static_cast<int64_t>(data.size())) {
    throw Error(ErrorCode::kBadModel, fmt::format("{} of {}", Signature(), ShapeToString(data)));
  }
  Shape shape(data.begin(), data.begin() + axis_);
  shape.insert(shape.end(), inputs[1].begin(), inputs[1].end());
  shape.insert(shape.end(), data.begin() + axis_ + 1, data.end());
  return shape;
}

Tensor GatherOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor &data = *inputs[0], &indices = *inputs[1];
  const Shape shapes[] = {data.shape(), indices.shape()};
  Tensor output(InferShape(shapes), Layout::Nchw(data.type()));
  const int64_t size = data.shape()[axis_];
  const int64_t inner = ElementCount(Shape(data.shape().begin() + axis_ + 1, data.shape().end()));
  const int64_t outer = ElementCount(Shape(data.shape().begin(), data.shape().begin() + axis_));
  const std::vector<int64_t> chosen = ElementsAs<int64_t>(indices);
  for (int64_t i = 0; i < indices.size(); ++i) {
    const int64_t index = chosen[i];
    if (index < -size || index >= size) {
      throw Error(ErrorCode::kBadModel, fmt::format("Gather index {} is outside axis {} of {}", index, axis_,
                                                    ShapeToString(data.shape())));
    }
    const int64_t at = index < 0 ? index + size : index;
    for (int64_t o = 0; o < outer; ++o) {
      CopyElements(data, (o * size + at) * inner, output, (o * indices.size() + i) * inner, inner);
    }
  }
  return output;
}

std::unique_ptr<Kernel> GatherOp::MakeKernel(const KernelRequest& request) const {
  // Where there is nothing to gather from, only the reference says that every index is outside.
  if (request.inputs[0][axis_] == 0) return MakeReferenceKernel(*this, request);
  return MakeGatherKernel(request, axis_);
}

std::string SliceOp::Signature() const {
  std::string text = "Slice";
  for (const SliceRange& range : ranges_) {
    text += fmt::format(" {}[{}:{}:{}]", range.axis, range.start, range.end, range.step);
  }
  return text;
}

std::vector<SliceAxis> SliceOp::Axes(const Shape& input) const {
  std::vector<SliceAxis> axes;
  for (const int64_t size : input) axes.push_back({0, 1, size});
  for (const SliceRange& range : ranges_) {
    if (range.axis >= static_cast<int64_t>(input.size())) {
      throw Error(ErrorCode::kBadModel, fmt::format("{} of {}", Signature(), ShapeToString(input)));
    }
    axes[range.axis] = Resolve(range, input[range.axis]);
  }
  return axes;
}

Shape SliceOp::InferShape(std::span<const Shape> inputs) const {
  Shape shape;
  for (const SliceAxis& axis : Axes(inputs[0])) shape.push_back(axis.count);
  return shape;
}

Tensor SliceOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor& input = *inputs[0];
  const Shape shapes[] = {input.shape()};
  Tensor output(InferShape(shapes), Layout::Nchw(input.type()));
  const std::vector<SliceAxis> axes = Axes(input.shape());
  const std::vector<int64_t> strides = DenseStrides(input.shape());
  GatherElements(input, output, [&](int64_t i) {
    int64_t from = 0;
    for (size_t axis = strides.size(); axis-- > 0; i /= output.shape()[axis]) {
      from += (axes[axis].start + i % output.shape()[axis] * axes[axis].step) * strides[axis];
    }
    return from;
  });
  return output;
}

bool SliceOp::RunsIn(const Layout& layout, std::span<const Shape> inputs) const {
  return layout.is_nchw() || inputs[0].size() <= 4;
}

std::unique_ptr<Kernel> SliceOp::MakeKernel(const KernelRequest& request) const {
  const std::vector<SliceAxis> axes = Axes(request.inputs[0]);
  if (!request.layout.is_nchw()) return MakeSliceKernel(request, axes);
  CopyRegion region;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    region.loops.push_back(
        {axes[axis].count, static_cast<int>(axis), axes[axis].step, static_cast<int>(axis)});
    region.in_start.push_back(axes[axis].start);
  }
  return MakeCopyKernel(request, {std::move(region)});
}

std::string ExpandOp::Signature() const { return fmt::format("Expand [{}]", fmt::join(target_, ",")); }

Shape ExpandOp::InferShape(std::span<const Shape> inputs) const {
  const std::optional<Shape> shape = BroadcastShapes(inputs[0], target_);
  if (!shape) {
    throw Error(ErrorCode::kBadModel, fmt::format("{} of {}", Signature(), ShapeToString(inputs[0])));
  }
  return *shape;
}

Tensor ExpandOp::Reference(std::span<const Tensor* const> inputs) const {
  const Shape shapes[] = {inputs[0]->shape()};
  Tensor output(InferShape(shapes), Layout::Nchw(inputs[0]->type()));
  const std::vector<int64_t> from = BroadcastIndices(inputs[0]->shape(), output.shape());
  GatherElements(*inputs[0], output, [&](int64_t i) { return from[i]; });
  return output;
}

std::unique_ptr<Kernel> ExpandOp::MakeKernel(const KernelRequest& request) const {
  const Shape& in = request.inputs[0];
  const size_t lead = request.output.size() - in.size();
  CopyRegion region;
  for (size_t axis = 0; axis < request.output.size(); ++axis) {
    const bool repeats = axis < lead || in[axis - lead] != request.output[axis];
    region.loops.push_back(
        {request.output[axis], repeats ? -1 : static_cast<int>(axis - lead), 1, static_cast<int>(axis)});
  }
  return MakeCopyKernel(request, {std::move(region)});
}

std::vector<OpImporter> IndexingImporters() {
  return {
      {"Gather", BuildGather}, {"Slice", BuildSlice}, {"Expand", BuildExpand}, {"Split", BuildSplit, true}};
}

}  // namespace tilesmith
