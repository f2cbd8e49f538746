#include "ops/elementwise/activations.h"

#include <fmt/format.h>

#include <limits>

#include "layouts/base/error.h"
#include "ops/base/broadcast.h"
#include "ops/base/import_util.h"
#include "ops/base/rounding.h"
#include "ops/base/saved_op.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/elementwise_kernel.h"
#include "ops/elementwise/logic.h"
#include "ops/movement/view.h"

namespace tilesmith {
namespace {

BuiltOp Built(ActivationKind kind, float alpha = 0, float beta = 0) {
  return BuiltWithInputs(std::make_shared<ActivationOp>(Activation{kind, alpha, beta}), 1);
}

void NeedFloatInput(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  if (spec.inputs[0].type != DataType::kF32) Refuse(spec, "only float inputs are supported");
}

template <ActivationKind kKind>
BuiltOp BuildPlain(const NodeSpec& spec) {
  NeedFloatInput(spec);
  return Built(kKind);
}

// Attributes up to opset 10, optional inputs from 11 on.
float ClipBound(const NodeSpec& spec, std::string_view attribute, size_t input, float fallback) {
  if (!spec.HasInput(input)) return spec.Float(attribute, fallback);
  const std::vector<float> values = ConstantFloats(spec, input);
  if (values.size() != 1) Refuse(spec, "a bound must be a scalar");
  return values[0];
}

BuiltOp BuildClip(const NodeSpec& spec) {
  NeedInputs(spec, 1, 3);
  const bool known = IsKnown(spec, 1) && IsKnown(spec, 2);
  if (spec.inputs[0].type != DataType::kF32 || !known) return BuildClipByNodes(spec);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kLargest = std::numeric_limits<float>::max();
  float low = ClipBound(spec, "min", 1, -kInfinity), high = ClipBound(spec, "max", 2, kInfinity);
  if (low <= -kLargest) low = -kInfinity;
  if (high >= kLargest) high = kInfinity;
  if (low == 0 && high == kInfinity) return Built(ActivationKind::kRelu);
  if (low == -kInfinity && high == kInfinity) {
    return BuiltWithInputs(std::make_shared<ViewOp>("Identity"), 1);
  }
  return Built(ActivationKind::kClip, low, high);
}

BuiltOp BuildLeakyRelu(const NodeSpec& spec) {
  NeedFloatInput(spec);
  return Built(ActivationKind::kLeakyRelu, spec.Float("alpha", 0.01f));
}

BuiltOp BuildHardSigmoid(const NodeSpec& spec) {
  NeedFloatInput(spec);
  return Built(ActivationKind::kHardSigmoid, spec.Float("alpha", 0.2f), spec.Float("beta", 0.5f));
}

}  // namespace

std::string_view ActivationOp::Type() const {
  switch (activation_.kind) {
    case ActivationKind::kNone:
      return "Identity";
    case ActivationKind::kRelu:
      return "Relu";
    case ActivationKind::kClip:
      return "Clip";
    case ActivationKind::kLeakyRelu:
      return "LeakyRelu";
    case ActivationKind::kHardSigmoid:
      return "HardSigmoid";
    case ActivationKind::kHardSwish:
      return "HardSwish";
    case ActivationKind::kSigmoid:
      return "Sigmoid";
    case ActivationKind::kTanh:
      return "Tanh";
    case ActivationKind::kSilu:
      return "Silu";
  }
  return "Identity";
}

std::string ActivationOp::Signature() const { return "Activation " + ActivationToString(activation_); }

Shape ActivationOp::InferShape(std::span<const Shape> inputs) const { return inputs[0]; }

Tensor ActivationOp::Reference(std::span<const Tensor* const> inputs) const {
  Tensor output(inputs[0]->shape());
  for (int64_t i = 0; i < output.size(); ++i) {
    output.floats()[i] = activation_.Apply(inputs[0]->floats()[i]);
  }
  return output;
}

bool ActivationOp::RunsIn(const Layout& layout, std::span<const Shape> inputs) const {
  return layout.is_nchw() || inputs[0].size() <= 4;
}

std::unique_ptr<Kernel> ActivationOp::MakeKernel(const KernelRequest& request) const {
  return MakeActivationKernel(request, activation_);
}

// Relu, Clip, LeakyRelu, Sigmoid, HardSigmoid, HardSwish, Tanh. A Clip without bounds is the identity.
std::vector<OpImporter> ActivationImporters() {
  return {
      {"Relu", BuildPlain<ActivationKind::kRelu>},
      {"Sigmoid", BuildPlain<ActivationKind::kSigmoid>},
      {"Tanh", BuildPlain<ActivationKind::kTanh>},
      {"HardSwish", BuildPlain<ActivationKind::kHardSwish>},
      {"HardSigmoid", BuildHardSigmoid},
      {"LeakyRelu", BuildLeakyRelu},
      {"Clip", BuildClip},
  };
}

namespace {

BuiltOp BuildPRelu(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  const Shape& shape = spec.inputs[0].shape;
  BuiltOp general = BuiltWithInputs(std::make_shared<BinaryOp>(BinaryKind::kPRelu), 2);
  if (shape.size() < 2 || !spec.inputs[1].constant) return general;
  std::vector<float> slopes = ConstantFloats(spec, 1);
  const Shape& slope_shape = spec.inputs[1].constant->shape();
  const int64_t channels = shape[1], count = static_cast<int64_t>(slopes.size());
  const int64_t axis = static_cast<int64_t>(shape.size()) - static_cast<int64_t>(slope_shape.size());
  // Aligned to the right as numpy does. A list is one value per channel in opset 6, and where converters
  // still write it so, which is where it does not fit the last axis.
  const bool on_channels = axis <= 1 && count == channels && slope_shape[1 - axis] == channels;
  const bool plain_list = slope_shape.size() == 1 && count == channels &&
                          (spec.opset < 7 || BroadcastShapes(slope_shape, shape) != shape);
  if (count == 1) {
    slopes.assign(channels, slopes[0]);
  } else if (!on_channels && !plain_list) {
    return general;
  }
  return BuiltWithInputs(std::make_shared<PReluOp>(std::move(slopes)), 1);
}

}  // namespace

Shape PReluOp::InferShape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1 || inputs[0].size() < 2 || inputs[0][1] != static_cast<int64_t>(slopes_.size())) {
    throw Error(ErrorCode::kBadModel, fmt::format("PRelu with {} slopes cannot apply to {}", slopes_.size(),
                                                  inputs.empty() ? "nothing" : ShapeToString(inputs[0])));
  }
  return inputs[0];
}

Tensor PReluOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor& input = *inputs[0];
  Tensor output(input.shape());
  const int64_t channels = input.shape()[1];
  const int64_t planes = input.shape()[0] * channels;
  const int64_t plane = planes == 0 ? 0 : input.size() / planes;
  for (int64_t i = 0; i < input.size(); ++i) {
    const float x = input.floats()[i];
    output.floats()[i] = x >= 0 ? x : slopes_[i / plane % channels] * x;
  }
  return output;
}

bool PReluOp::RunsIn(const Layout& layout, std::span<const Shape> inputs) const {
  return layout.is_nchw() || inputs[0].size() <= 4;
}

std::unique_ptr<Kernel> PReluOp::MakeKernel(const KernelRequest& request) const {
  return MakePReluKernel(request, slopes_);
}

// PRelu: this with constant slopes, scalar or per channel, otherwise a BinaryOp.
std::vector<OpImporter> PReluImporters() { return {{"PRelu", BuildPRelu}}; }

Tensor ActivationOp::RoundingBound(const OpRun& run) const {
  return BoundsOf(Absolute(*run.inputs[0]), 0, activation_);
}

std::vector<SavedOp> ActivationOps() { return {Saved<ActivationOp>("Activation"), Saved<PReluOp>("PRelu")}; }

}  // namespace tilesmith
