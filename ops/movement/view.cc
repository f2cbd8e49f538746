#include "ops/movement/view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "layouts/base/error.h"
#include "ops/base/elements.h"
#include "ops/base/import_util.h"
#include "ops/base/op.h"
#include "ops/base/saved_op.h"

namespace tilesmith {
namespace {

class ViewKernel : public Kernel {
 public:
  explicit ViewKernel(const KernelRequest& request)
      : bytes_(ElementCount(request.output) * ElementBytes(request.layout.type())),
        in_image_(ImageBytes(request.inputs[0], request.layout)),
        out_image_(ImageBytes(request.output, request.layout)) {}

  int64_t Tasks(int) const override { return CeilDiv(bytes_, kPieceBytes); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const int64_t end = std::min(range.end * kPieceBytes, bytes_);
    for (int64_t at = range.begin * kPieceBytes; at < end;) {
      const int64_t in_at = at % in_image_, out_at = at % out_image_;
      const int64_t count = std::min({end - at, in_image_ - in_at, out_image_ - out_at});
      std::memcpy(args.output.image<char>(at / out_image_) + out_at,
                  args.inputs[0].image<char>(at / in_image_) + in_at, count);
      at += count;
    }
  }

 private:
  static constexpr int64_t kPieceBytes = 16384;
  static int64_t ImageBytes(const Shape& shape, const Layout& layout) {
    return std::max<int64_t>(BatchStride(shape, layout) * ElementBytes(layout.type()), 1);
  }
  const int64_t bytes_, in_image_, out_image_;
};

BuiltOp Built(const NodeSpec& spec, Shape target) {
  return BuiltWithInputs(std::make_shared<ViewOp>(spec.op_type, std::move(target)), 1);
}

// A view without elements, of which no size is open or copied.
BuiltOp BuiltOfNothing(const NodeSpec& spec, const Shape& target) {
  CheckShape(target, spec.limits);
  return {
      std::make_shared<ConstantOp>(std::make_shared<const Tensor>(target, Layout::Nchw(spec.inputs[0].type))),
      {}};
}

BuiltOp BuildReshape(const NodeSpec& spec) {
  NeedInputs(spec, 1, 2);
  const std::optional<std::vector<int64_t>> target = IntsFromAttributeOrInput(spec, "shape", 1);
  if (!target) Refuse(spec, "it states no shape");
  const bool has_zero = std::ranges::find(*target, 0) != target->end();
  if (spec.Int("allowzero", 0) == 0 || !has_zero) return Built(spec, *target);
  if (ElementCount(spec.inputs[0].shape) != 0) {
    Refuse(spec, fmt::format("{} elements as {}, which has none", ElementCount(spec.inputs[0].shape),
                             ShapeToString(*target)));
  }
  return BuiltOfNothing(spec, *target);
}

BuiltOp BuildFlatten(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  const Shape& shape = spec.inputs[0].shape;
  int64_t axis = spec.Int("axis", 1);
  const int64_t rank = static_cast<int64_t>(shape.size());
  if (axis != rank) axis = NormalAxis(spec, axis, rank);
  const int64_t rows = ElementCount(Shape(shape.begin(), shape.begin() + axis));
  const int64_t columns = ElementCount(Shape(shape.begin() + axis, shape.end()));
  return rows * columns == 0 ? BuiltOfNothing(spec, {rows, columns}) : Built(spec, {rows, columns});
}

BuiltOp BuildSqueeze(const NodeSpec& spec) {
  NeedInputs(spec, 1, 2);
  const Shape& shape = spec.inputs[0].shape;
  std::vector<int64_t> axes;
  if (const auto given = IntsFromAttributeOrInput(spec, "axes", 1)) {
    axes = NormalAxes(spec, *given, shape.size());
  } else {
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] == 1) axes.push_back(static_cast<int64_t>(axis));
    }
  }
  Shape target = shape;
  for (size_t i = axes.size(); i-- > 0;) {
    if (shape[axes[i]] != 1) {
      Refuse(spec, fmt::format("axis {} of {} is not of size 1", axes[i], ShapeToString(shape)));
    }
    target.erase(target.begin() + axes[i]);
  }
  return Built(spec, target);
}

BuiltOp BuildUnsqueeze(const NodeSpec& spec) {
  NeedInputs(spec, 1, 2);
  const auto given = IntsFromAttributeOrInput(spec, "axes", 1);
  if (!given) Refuse(spec, "it states no axes");
  Shape target = spec.inputs[0].shape;
  for (const int64_t axis : NormalAxes(spec, *given, target.size() + given->size())) {
    target.insert(target.begin() + axis, 1);
  }
  return Built(spec, target);
}

// Dropout's ratio and training_mode inputs do not matter at inference, unless training is asked for.
BuiltOp BuildDropout(const NodeSpec& spec) {
  NeedInputs(spec, 1, 3);
  if (spec.HasInput(2)) {
    NeedKnown(spec, 2, "its training_mode");
    const std::vector<int64_t> training = ConstantInts(spec, 2);
    if (training.size() == 1 && training[0] != 0)
      Refuse(spec, "training_mode is true, only inference is supported");
  }
  if (spec.output == 1) {  // the mask of what is kept: everything
    const Shape& shape = spec.inputs[0].shape;
    NeedFoldable(spec, shape);
    Tensor mask(shape, Layout::Nchw(DataType::kBool));
    std::fill_n(mask.data<bool>(), mask.size(), true);
    return {std::make_shared<ConstantOp>(std::make_shared<const Tensor>(std::move(mask))), {}};
  }
  return BuiltWithInputs(std::make_shared<ViewOp>(spec.op_type), 1);
}

BuiltOp BuildIdentity(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  return BuiltWithInputs(std::make_shared<ViewOp>(spec.op_type), 1);
}

}  // namespace

std::string ViewOp::Signature() const {
  return identity_ ? type_ : fmt::format("{} to [{}]", type_, fmt::join(target_, ","));
}

Shape ViewOp::InferShape(std::span<const Shape> inputs) const {
  if (identity_) return inputs[0];
  const Shape& from = inputs[0];
  const auto fail = [&]() {
    throw Error(ErrorCode::kBadModel, fmt::format("{} cannot view {}", Signature(), ShapeToString(from)));
  };
  Shape shape = target_, rest = from;
  Checked known = 1;  // beside sizes that are copied, as `rest` is what those leave
  size_t open = shape.size();
  const bool copies = type_ != "Squeeze" && type_ != "Unsqueeze";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && copies) {
      if (i >= from.size()) fail();
      shape[i] = from[i];
      rest[i] = 1;
    } else if (shape[i] == -1 && open == shape.size()) {
      open = i;
    } else if (shape[i] < 0) {
      fail();
    } else {
      known *= shape[i];
    }
  }
  const int64_t count = ElementCount(rest);
  if (open < shape.size()) {
    if (known.value() == 0 || count % known.value() != 0) fail();
    shape[open] = count / known.value();
  }
  if (ElementCount(shape) != ElementCount(from)) fail();
  return shape;
}

Tensor ViewOp::Reference(std::span<const Tensor* const> inputs) const {
  const Shape shapes[] = {inputs[0]->shape()};
  return inputs[0]->Reshaped(InferShape(shapes));
}

std::unique_ptr<Kernel> ViewOp::MakeKernel(const KernelRequest& request) const {
  return std::make_unique<ViewKernel>(request);
}

// Reshape, Flatten, Squeeze, Unsqueeze, Identity, Dropout.
std::vector<OpImporter> ViewImporters() {
  return {{"Reshape", BuildReshape},     {"Flatten", BuildFlatten},       {"Squeeze", BuildSqueeze},
          {"Unsqueeze", BuildUnsqueeze}, {"Dropout", BuildDropout, true}, {"Identity", BuildIdentity}};
}

std::vector<SavedOp> ViewOps() { return {Saved<ViewOp>("View")}; }

}  // namespace tilesmith
