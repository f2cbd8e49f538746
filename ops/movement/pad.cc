#include "ops/movement/pad.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "layouts/base/error.h"
#include "ops/base/elements.h"
#include "ops/base/import_util.h"
#include "ops/base/node_writer.h"
#include "ops/base/saved_op.h"

namespace tilesmith {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);

// A plain output written row by row along its last axis; a task is one row.
class PaddedRowKernel : public Kernel {
 public:
  explicit PaddedRowKernel(const KernelRequest& request)
      : in_shape_(request.inputs[0]),
        out_shape_(request.output),
        in_strides_(DenseStrides(in_shape_)),
        row_(out_shape_.back()),
        rows_(row_ == 0 ? 0 : ElementCount(out_shape_) / row_),
        rows_per_image_(out_shape_[0] == 0 || out_shape_.size() == 1 ? 1 : rows_ / out_shape_[0]) {}

  int64_t Tasks(int) const override { return rows_; }

 protected:
  int64_t InStride(const KernelArgs& args, size_t axis) const {
    return axis == 0 ? args.inputs[0].batch_stride / kFloatBytes : in_strides_[axis];
  }
  // A tensor of rank 1 is one row, its elements a batch that may be spread.
  int64_t OutStep(const KernelArgs& args) const {
    return out_shape_.size() == 1 ? args.output.batch_stride / kFloatBytes : 1;
  }
  float* OutRow(const KernelArgs& args, int64_t row) const {
    if (out_shape_.size() == 1) return args.output.image<float>(0);
    return args.output.image<float>(row / rows_per_image_) + row % rows_per_image_ * row_;
  }

  const Shape in_shape_, out_shape_;
  const std::vector<int64_t> in_strides_;
  const int64_t row_, rows_, rows_per_image_;
};

class PadKernel : public PaddedRowKernel {
 public:
  PadKernel(const KernelRequest& request, const PadOp& op) : PaddedRowKernel(request), op_(op) {}

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const size_t last = out_shape_.size() - 1;
    for (int64_t row = range.begin; row < range.end; ++row) {
      int64_t rest = row, from = 0;
      bool inside = true;
      for (size_t axis = last; axis-- > 0; rest /= out_shape_[axis]) {
        const int64_t at =
            PadSource(op_.mode(), rest % out_shape_[axis] - op_.begin()[axis], in_shape_[axis]);
        inside = inside && at >= 0;
        from += at * InStride(args, axis);
      }
      PadRow(args, inside ? args.inputs[0].image<float>(0) + from : nullptr, OutRow(args, row));
    }
  }

 private:
  // `in` is the input row, null where all is padding.
  void PadRow(const KernelArgs& args, const float* in, float* out) const {
    const size_t last = out_shape_.size() - 1;
    const int64_t step = InStride(args, last), out_step = OutStep(args);
    const int64_t begin = op_.begin()[last], size = in_shape_[last];
    for (int64_t i = 0; i < row_;) {
      const bool middle = in && step == 1 && out_step == 1 && i >= begin && i < begin + size;
      if (middle) {
        const int64_t count = std::min(row_, begin + size) - i;
        std::memcpy(out + i, in + i - begin, count * sizeof(float));
        i += count;
        continue;
      }
      const int64_t at = in ? PadSource(op_.mode(), i - begin, size) : -1;
      out[i * out_step] = at < 0 ? op_.value() : in[at * step];
      ++i;
    }
  }

  const PadOp op_;
};

PadMode ParseMode(const NodeSpec& spec) {
  const std::string mode = spec.String("mode", "constant");
  if (mode == "constant") return PadMode::kConstant;
  if (mode == "reflect") return PadMode::kReflect;
  if (mode == "edge") return PadMode::kEdge;
  Refuse(spec, fmt::format("mode \"{}\" is not supported (supported: constant, reflect, edge)", mode));
}

// A constant that is not known yet, where a mask, which is, says so.
BuiltOp BuildFill(const NodeSpec& spec) {
  if (ElementCount(spec.inputs[2].shape) != 1) Refuse(spec, "the constant value must be a scalar");
  const Shape& shape = spec.inputs[0].shape;
  NeedFoldable(spec, shape);
  Tensor inside(shape, Layout::Nchw(DataType::kBool));
  std::fill_n(inside.data<bool>(), inside.size(), true);
  NodeWriter writer(spec);
  const auto padded = [&](const std::string& x) {
    std::vector<std::string> inputs = {x, writer.In(1)};
    if (spec.HasInput(3)) inputs.insert(inputs.end(), {"", writer.In(3)});
    return writer.Add("Pad", std::move(inputs));
  };
  const std::string mask = padded(writer.Constant(std::move(inside)));
  writer.Add("Where", {mask, padded(writer.In(0)), writer.Reshape(writer.In(2), {})}, {}, writer.Out(0));
  return writer.Take();
}

BuiltOp BuildPad(const NodeSpec& spec) {
  NeedInputs(spec, 1, 4);
  const size_t rank = spec.inputs[0].shape.size();
  const auto pads = IntsFromAttributeOrInput(spec, "pads", 1);
  if (!pads) Refuse(spec, "it states no pads");
  const auto fits = [](int64_t pad) { return pad >= -kMaxTensorElements && pad <= kMaxTensorElements; };
  if (!std::ranges::all_of(*pads, fits)) {
    Refuse(spec, fmt::format("pads are [{}], allowed are {} to {}", fmt::join(*pads, ", "),
                             -kMaxTensorElements, kMaxTensorElements));
  }
  std::vector<int64_t> axes(rank);
  for (size_t axis = 0; axis < rank; ++axis) axes[axis] = static_cast<int64_t>(axis);
  if (spec.HasInput(3)) {
    axes = ConstantInts(spec, 3);
    for (int64_t& axis : axes) axis = NormalAxis(spec, axis, rank);
  }
  if (pads->size() != 2 * axes.size()) {
    Refuse(spec, fmt::format("pads has {} values for {} axes", pads->size(), axes.size()));
  }
  const PadMode mode = ParseMode(spec);
  if (mode == PadMode::kConstant && !IsKnown(spec, 2)) return BuildFill(spec);
  float value = spec.Float("value", 0);
  if (mode == PadMode::kConstant && spec.HasInput(2)) {
    const std::vector<float> values = ConstantFloats(spec, 2);
    if (values.size() != 1) Refuse(spec, "the constant value must be a scalar");
    value = values[0];
  }
  std::vector<int64_t> begin(rank), end(rank);
  for (size_t i = 0; i < axes.size(); ++i) {
    begin[axes[i]] = (*pads)[i];
    end[axes[i]] = (*pads)[i + axes.size()];
  }
  return BuiltWithInputs(std::make_shared<PadOp>(mode, begin, end, value), 1);
}

}  // namespace

int64_t PadSource(PadMode mode, int64_t at, int64_t size) {
  if (at >= 0 && at < size) return at;
  if (mode == PadMode::kConstant) return -1;
  if (mode == PadMode::kEdge) return std::clamp<int64_t>(at, 0, size - 1);
  return at < 0 ? -at : 2 * (size - 1) - at;
}

std::string PadOp::Signature() const {
  constexpr std::string_view kModes[] = {"constant", "reflect", "edge"};
  return fmt::format("Pad {} [{}] [{}] {}", kModes[static_cast<int>(mode_)], fmt::join(begin_, ","),
                     fmt::join(end_, ","), value_);
}

Shape PadOp::InferShape(std::span<const Shape> inputs) const {
  Shape shape = inputs[0];
  bool fits = shape.size() == begin_.size();
  for (size_t axis = 0; fits && axis < shape.size(); ++axis) {
    const int64_t mirrored = std::max(begin_[axis], end_[axis]);
    if (mode_ == PadMode::kReflect) fits = mirrored <= 0 || mirrored < shape[axis];
    if (mode_ == PadMode::kEdge) fits = mirrored <= 0 || shape[axis] > 0;
    shape[axis] = (Checked(shape[axis]) + begin_[axis] + end_[axis]).value();
    fits = fits && shape[axis] >= 0;
  }
  if (!fits) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("{} cannot apply to {}", Signature(), ShapeToString(inputs[0])));
  }
  return shape;
}

Tensor PadOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor& input = *inputs[0];
  const Shape shapes[] = {input.shape()};
  Tensor output(InferShape(shapes), Layout::Nchw(input.type()));
  const std::vector<int64_t> strides = DenseStrides(input.shape());
  VisitType(input.type(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const T value = ConvertElement<T>(value_);
    for (int64_t i = 0; i < output.size(); ++i) {
      int64_t rest = i, from = 0;
      bool inside = true;
      for (size_t axis = strides.size(); axis-- > 0; rest /= output.shape()[axis]) {
        const int64_t at = PadSource(mode_, rest % output.shape()[axis] - begin_[axis], input.shape()[axis]);
        inside = inside && at >= 0;
        from += at * strides[axis];
      }
      output.data<T>()[i] = inside ? input.data<T>()[from] : value;
    }
  });
  return output;
}

std::unique_ptr<Kernel> PadOp::MakeKernel(const KernelRequest& request) const {
  return request.output.empty() ? Op::MakeKernel(request) : std::make_unique<PadKernel>(request, *this);
}

std::vector<OpImporter> PadImporters() { return {{"Pad", BuildPad}}; }

std::vector<SavedOp> PadOps() { return {Saved<PadOp>("Pad")}; }

}  // namespace tilesmith
