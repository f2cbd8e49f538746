#include "ops/elementwise/batch_norm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "layouts/base/check.h"
#include "layouts/derived_tensors.h"
#include "ops/base/import_util.h"
#include "ops/base/node_writer.h"
#include "ops/base/rounding.h"
#include "ops/base/saved_op.h"
#include "ops/elementwise/elementwise_kernel.h"

namespace tilesmith {
namespace {

// Mean and variance are those of the input, and blended into the running ones.
BuiltOp BuildTraining(const NodeSpec& spec) {
  const Shape& shape = spec.inputs[0].shape;
  if (shape.size() < 2) Refuse(spec, fmt::format("its input {} has no channel axis", ShapeToString(shape)));
  NodeWriter writer(spec);
  std::vector<int64_t> axes, per_channel(shape.size(), 1);
  for (int64_t axis = 0; axis < std::ssize(shape); ++axis) {
    if (axis != 1) axes.push_back(axis);
  }
  per_channel[1] = shape[1];
  const auto mean_of = [&](const std::string& x) {
    return axes.empty() ? x : writer.Add("ReduceMean", {x, writer.Ints(axes)});
  };
  const std::string mean = mean_of(writer.In(0)), centered = writer.Add("Sub", {writer.In(0), mean});
  const std::string variance = mean_of(writer.Add("Mul", {centered, centered}));
  const std::string spread =
      writer.Add("Sqrt", {writer.Add("Add", {variance, writer.Float(spec.Float("epsilon", 1e-5f))})});
  const std::string scaled =
      writer.Add("Mul", {writer.Add("Div", {centered, spread}), writer.Reshape(writer.In(1), per_channel)});
  writer.Add("Add", {scaled, writer.Reshape(writer.In(2), per_channel)}, {}, writer.Out(0));
  const float momentum = spec.Float("momentum", 0.9f);
  for (size_t i = 1; i < std::min<size_t>(spec.output_names.size(), 3); ++i) {
    if (writer.Out(i).empty()) continue;
    const std::string now = writer.Reshape(i == 1 ? mean : variance, {shape[1]});
    writer.Add("Add",
               {writer.Add("Mul", {writer.In(i + 2), writer.Float(momentum)}),
                writer.Add("Mul", {now, writer.Float(1 - momentum)})},
               {}, writer.Out(i));
  }
  return writer.Take();
}

// (x - mean) / sqrt(variance + epsilon) * scale + bias, where the parameters, which broadcast to x as `shape`
// says, are not known yet, or differ from element to element.
BuiltOp BuildByNodes(const NodeSpec& spec, const Shape& shape) {
  NodeWriter writer(spec);
  const auto parameter = [&](size_t index) { return writer.Reshape(writer.In(index), shape); };
  const std::string spread =
      writer.Add("Sqrt", {writer.Add("Add", {parameter(4), writer.Float(spec.Float("epsilon", 1e-5f))})});
  const std::string factor = writer.Add("Div", {parameter(1), spread});
  const std::string centered = writer.Add("Sub", {writer.In(0), parameter(3)});
  writer.Add("Add", {writer.Add("Mul", {centered, factor}), parameter(2)}, {}, writer.Out(0));
  return writer.Take();
}

// Until opset 8 there may be a mean for each element of an image instead of one for each channel.
bool IsByElement(const NodeSpec& spec) { return spec.opset < 9 && spec.Int("spatial", 1) == 0; }

BuiltOp BuildBatchNorm(const NodeSpec& spec) {
  NeedInputs(spec, 5, 5);
  if (spec.Int("training_mode", 0) != 0) return BuildTraining(spec);
  const Shape& shape = spec.inputs[0].shape;
  if (shape.size() < 2) Refuse(spec, fmt::format("its input {} has no channel axis", ShapeToString(shape)));
  Shape along(shape.begin() + 1, shape.end());
  if (!IsByElement(spec)) std::fill(along.begin() + 1, along.end(), 1);
  const int64_t values = ElementCount(along);
  const size_t channels = shape[1];
  bool known = true;
  for (size_t i = 1; i <= 4; ++i) {
    const int64_t count = ElementCount(spec.inputs[i].shape);
    if (count != values) {
      Refuse(spec, fmt::format("input {} has {} values for {} {}", i, count, values,
                               values == shape[1] ? "channels" : "elements of an image"));
    }
    known = known && spec.inputs[i].constant;
  }
  if (!known || values != shape[1]) return BuildByNodes(spec, along);
  std::vector<float> parameters[4];  // scale, bias, mean, variance
  for (size_t i = 0; i < 4; ++i) parameters[i] = ConstantFloats(spec, i + 1);
  const double epsilon = spec.Float("epsilon", 1e-5f);
  std::vector<float> scale(channels), shift(channels);
  for (size_t c = 0; c < channels; ++c) {
    const double factor = parameters[0][c] / std::sqrt(parameters[3][c] + epsilon);
    scale[c] = static_cast<float>(factor);
    shift[c] = static_cast<float>(parameters[1][c] - parameters[2][c] * factor);
  }
  return BuiltWithInputs(std::make_shared<ScaleShiftOp>(std::move(scale), std::move(shift)), 1);
}

}  // namespace

ScaleShiftOp::ScaleShiftOp(std::vector<float> scale, std::vector<float> shift, Activation activation)
    : scale_(std::move(scale)), shift_(std::move(shift)), activation_(activation) {
  TILESMITH_CHECK(scale_.size() == shift_.size());
}

std::string ScaleShiftOp::Signature() const {
  const std::string activation = ActivationToString(activation_);
  return activation.empty() ? "ScaleShift" : "ScaleShift+" + activation;
}

Shape ScaleShiftOp::InferShape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1 || inputs[0].size() < 2 || inputs[0][1] != static_cast<int64_t>(scale_.size())) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("a per-channel scale of {} channels cannot apply to {}", scale_.size(),
                            inputs.empty() ? "nothing" : ShapeToString(inputs[0])));
  }
  return inputs[0];
}

Tensor ScaleShiftOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor& input = *inputs[0];
  Tensor output(input.shape());
  const int64_t channels = input.shape()[1];
  const int64_t planes = input.shape()[0] * channels;
  const int64_t plane = planes == 0 ? 0 : input.size() / planes;
  for (int64_t i = 0; i < input.size(); ++i) {
    const int64_t c = i / plane % channels;
    const double value = static_cast<double>(scale_[c]) * input.floats()[i] + shift_[c];
    output.floats()[i] = activation_.Apply(static_cast<float>(value));
  }
  return output;
}

double ScaleShiftOp::Flops(std::span<const Shape> inputs) const { return 2.0 * ElementCount(inputs[0]); }

bool ScaleShiftOp::RunsIn(const Layout& layout, std::span<const Shape> inputs) const {
  return layout.is_nchw() || inputs[0].size() <= 4;
}

std::unique_ptr<Kernel> ScaleShiftOp::MakeKernel(const KernelRequest& request) const {
  return MakeScaleShiftKernel(request, scale_, shift_, activation_);
}

// BatchNormalization.
std::vector<OpImporter> BatchNormImporters() { return {{"BatchNormalization", BuildBatchNorm}}; }

Tensor ScaleShiftOp::Magnitudes(const Tensor& input) const {
  Tensor magnitudes(input.shape());
  const int64_t channels = input.shape()[1];
  const int64_t planes = std::max<int64_t>(input.shape()[0] * channels, 1), plane = input.size() / planes;
  for (int64_t i = 0; i < input.size(); ++i) {
    const int64_t c = i / plane % channels;
    magnitudes.floats()[i] = std::abs(scale_[c] * input.floats()[i]) + std::abs(shift_[c]);
  }
  return magnitudes;
}

Tensor ScaleShiftOp::RoundingBound(const OpRun& run) const {
  return BoundsOf(Magnitudes(*run.inputs[0]), 2, activation_);
}

OpPtr ScaleShiftOp::WithActivation(const Activation& activation) const {
  if (activation_.kind != ActivationKind::kNone) return nullptr;
  return std::make_shared<ScaleShiftOp>(scale_, shift_, activation);
}

std::shared_ptr<const Tensor> ScaleShiftOp::ScaledBias(const Tensor* bias) const {
  auto result = std::make_shared<Tensor>(Shape{static_cast<int64_t>(scale_.size())});
  for (size_t c = 0; c < scale_.size(); ++c) {
    const double before = bias == nullptr ? 0.0 : bias->floats()[c];
    result->floats()[c] = static_cast<float>(before * scale_[c] + shift_[c]);
  }
  return result;
}

TensorPtr ScaleShiftOp::ScaledWeights(const TensorPtr& weights, int64_t inner) const {
  Derivation derivation("scale * weights");
  derivation.Add(weights).Add(scale_).Add({inner});
  return Derived(std::move(derivation), [&] {
    auto result = std::make_shared<Tensor>(weights->shape(), Layout::Nchw(), NewMemory::kAnything);
    const int64_t channels = static_cast<int64_t>(scale_.size());
    const int64_t rows = weights->size() / inner;
    const float* from = weights->floats();
    float* to = result->floats();
    for (int64_t row = 0; row < rows; ++row, from += inner, to += inner) {
      const float scale = scale_[row % channels];
      for (int64_t i = 0; i < inner; ++i) to[i] = from[i] * scale;
    }
    return result;
  });
}

std::vector<SavedOp> BatchNormOps() { return {Saved<ScaleShiftOp>("ScaleShift")}; }

}  // namespace tilesmith
