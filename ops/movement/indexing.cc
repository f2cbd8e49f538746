#include "ops/movement/indexing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "layouts/base/error.h"
#include "ops/base/broadcast.h"
#include "ops/base/elements.h"
#include "ops/base/import_util.h"
#include "ops/base/saved_op.h"
#include "ops/kernels/block_kernel.h"
#include "ops/kernels/lane_copy.h"
#include "ops/kernels/loop_nest.h"
#include "ops/movement/strided_copy.h"

namespace tilesmith {
namespace {

constexpr int64_t kGatherPieceElements = 4096;

class GatherKernel : public Kernel {
 public:
  GatherKernel(const KernelRequest& request, int64_t axis)
      : request_(request),
        axis_(axis),
        size_(request.inputs[0][axis]),
        element_(ElementBytes(request.layout.type())),
        inner_(ElementCount(Shape(request.inputs[0].begin() + axis + 1, request.inputs[0].end()))),
        rows_(inner_ == 0 ? 0 : ElementCount(request.output) / inner_),
        piece_(std::max<int64_t>(kGatherPieceElements / std::max<int64_t>(inner_, 1), 1)),
        read_(ReaderOf(request.InputType(1))) {}

  int64_t Tasks(int) const override { return CeilDiv(rows_, piece_); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const Layout index_layout = Layout::Nchw(request_.InputType(1));
    const MemoryDims data = MemoryDimsOf(request_.inputs[0], request_.layout, args.inputs[0].batch_stride);
    const MemoryDims indices = MemoryDimsOf(request_.inputs[1], index_layout, args.inputs[1].batch_stride);
    const MemoryDims out = MemoryDimsOf(request_.output, request_.layout, args.output.batch_stride);
    OperandLoops<3> rows;   // operands: the data, the indices, the output
    OperandLoops<2> inner;  // the data, the output
    int to = 0;
    for (int d = 0; d < axis_; ++d, ++to) rows.Add(data.size[d], {data.stride[d], 0, out.stride[to]});
    for (int d = 0; d < indices.rank; ++d, ++to)
      rows.Add(indices.size[d], {0, indices.stride[d], out.stride[to]});
    for (int d = static_cast<int>(axis_) + 1; d < data.rank; ++d, ++to) {
      inner.Add(data.size[d], {data.stride[d], out.stride[to]});
    }
    const char* const from = args.inputs[0].image<char>(0);
    char* const result = args.output.image<char>(0);
    if (inner_ == 1 && element_ == 4 && request_.InputType(1) == DataType::kI64) {
      return GatherSingles(args, rows, data.stride[axis_], range);
    }
    rows.ForEach(range.begin * piece_, std::min(range.end * piece_, rows_),
                 [&](const OperandLoops<3>::Part& part) {
                   for (int64_t row = 0; row < part.rows; ++row) {
                     for (int64_t column = 0; column < part.columns; ++column) {
                       const auto at = [&](int k) {
                         return part.offset[k] + row * part.row[k] + column * part.column[k];
                       };
                       const int64_t source = at(0) + IndexAt(args.inputs[1], at(1)) * data.stride[axis_];
                       CopyInner(inner, from + source * element_, result + at(2) * element_);
                     }
                   }
                 });
  }

 private:
  using Reader = int64_t (*)(const void*, int64_t);
  static Reader ReaderOf(DataType type) {
    return VisitType(type, [](auto tag) -> Reader {
      using T = typename decltype(tag)::Type;
      return [](const void* data, int64_t at) {
        return ConvertElement<int64_t>(static_cast<const T*>(data)[at]);
      };
    });
  }

  // Elements of four bytes, one by one.
  void GatherSingles(const KernelArgs& args, const OperandLoops<3>& rows, int64_t stride,
                     TaskRange range) const {
    const auto* const from = args.inputs[0].image<uint32_t>(0);
    const auto* const indices = args.inputs[1].image<int64_t>(0);
    auto* const result = args.output.image<uint32_t>(0);
    rows.ForEach(range.begin * piece_, std::min(range.end * piece_, rows_),
                 [&](const OperandLoops<3>::Part& part) {
                   for (int64_t row = 0; row < part.rows; ++row) {
                     const uint32_t* const in = from + part.offset[0] + row * part.row[0];
                     const int64_t* const at = indices + part.offset[1] + row * part.row[1];
                     uint32_t* const out = result + part.offset[2] + row * part.row[2];
                     for (int64_t i = 0; i < part.columns; ++i) {
                       const int64_t index = InRange(at[i * part.column[1]]);
                       out[i * part.column[2]] = in[i * part.column[0] + index * stride];
                     }
                   }
                 });
  }

  int64_t IndexAt(const InputView& indices, int64_t at) const { return InRange(read_(indices.data, at)); }

  int64_t InRange(int64_t given) const {
    const int64_t index = given < 0 ? given + size_ : given;
    if (index < 0 || index >= size_) {
      throw Error(ErrorCode::kBadModel, fmt::format("Gather index {} is outside axis {} of {}", given, axis_,
                                                    ShapeToString(request_.inputs[0])));
    }
    return index;
  }

  void CopyInner(const OperandLoops<2>& inner, const char* from, char* to) const {
    inner.ForEach(0, inner_, [&](const OperandLoops<2>::Part& part) {
      for (int64_t row = 0; row < part.rows; ++row) {
        const char* in = from + (part.offset[0] + row * part.row[0]) * element_;
        char* out = to + (part.offset[1] + row * part.row[1]) * element_;
        if (part.columns == 1 || (part.column[0] == 1 && part.column[1] == 1)) {
          std::memcpy(out, in, part.columns * element_);
          continue;
        }
        for (int64_t i = 0; i < part.columns; ++i) {
          std::memcpy(out + i * part.column[1] * element_, in + i * part.column[0] * element_, element_);
        }
      }
    });
  }

  const KernelRequest request_;
  const int64_t axis_, size_, element_, inner_, rows_, piece_;
  const Reader read_;
};

// GatherOp's formula along `axis`, for elements of any type and indices of any integer type. Running
// throws Error(kBadModel) naming an index outside of the axis.
std::unique_ptr<Kernel> MakeGatherKernel(const KernelRequest& request, int64_t axis) {
  return std::make_unique<GatherKernel>(request, axis);
}

// A task is one row of one output block.
class SliceKernel : public Kernel {
 public:
  SliceKernel(const KernelRequest& request, const std::vector<SliceAxis>& axes)
      : in_(BlockDimsOf(request.inputs[0], request.layout)),
        out_(BlockDimsOf(request.output, request.layout)),
        bytes_(ElementBytes(request.layout.type())) {
    std::copy(axes.begin(), axes.end(), axes_);
    runs_ = LaneRuns(out_.channels, {in_.lanes, out_.lanes},
                     [&](int64_t c) { return axes_[1].start + c * axes_[1].step; });
  }

  int64_t Tasks(int) const override {
    return out_.images * static_cast<int64_t>(runs_.size()) * out_.height * (out_.width > 0);
  }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const auto& [images, channels, rows, columns] = axes_;
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t y = task % out_.height, plane = task / out_.height;
      const int64_t image = plane / out_.blocks, block = plane % out_.blocks;
      const int64_t from_row = rows.start + y * rows.step, from_image = images.start + image * images.step;
      const std::byte* const in = args.inputs[0].image<std::byte>(from_image) +
                                  (from_row * in_.width + columns.start) * in_.lanes * bytes_;
      std::byte* const out =
          args.output.image<std::byte>(image) + (block * out_.height + y) * out_.width * out_.lanes * bytes_;
      for (const LaneRun& run : runs_[block]) {
        const int64_t from = run.source_block * in_.block_floats() + run.source_lane;
        CopyLanes(ElementLanes({in + from * bytes_, out + run.lane * bytes_, columns.step * in_.lanes,
                                out_.lanes, run.count, out_.width},
                               bytes_));
      }
      const int64_t used = out_.UsedLanes(block) * bytes_, lanes = out_.lanes * bytes_;
      for (int64_t x = 0; used < lanes && x < out_.width; ++x)
        std::fill_n(out + x * lanes + used, lanes - used, std::byte{0});
    }
  }

 private:
  const BlockDims in_, out_;
  const int64_t bytes_;  // of an element
  SliceAxis axes_[4];
  std::vector<std::vector<LaneRun>> runs_;  // by output block
};

}  // namespace

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
  if (!request.layout.is_nchw()) return std::make_unique<SliceKernel>(request, axes);
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

// Gather, Slice, Expand, Split (each of its outputs is a Slice).
std::vector<OpImporter> IndexingImporters() {
  return {
      {"Gather", BuildGather}, {"Slice", BuildSlice}, {"Expand", BuildExpand}, {"Split", BuildSplit, true}};
}

std::vector<SavedOp> IndexingOps() {
  return {Saved<GatherOp>("Gather"), Saved<SliceOp>("Slice"), Saved<ExpandOp>("Expand")};
}

}  // namespace tilesmith
