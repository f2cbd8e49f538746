#include "ops/elementwise/batch_norm.h"

#include <fmt/format.h>

#include <cmath>

#include "layouts/base/check.h"
#include "ops/base/import_util.h"
#include "ops/elementwise/elementwise_kernel.h"

namespace tilesmith {
namespace {

BuiltOp BuildBatchNorm(const NodeSpec& spec) {
  NeedInputs(spec, 5, 5);
  if (spec.Int("training_mode", 0) != 0) Refuse(spec, "training_mode is 1, only inference is supported");
  if (spec.Int("spatial", 1) != 1) Refuse(spec, "spatial is 0, only per-channel statistics are supported");
  const Shape& shape = spec.inputs[0].shape;
  if (shape.size() < 2) Refuse(spec, fmt::format("its input {} has no channel axis", ShapeToString(shape)));
  const size_t channels = shape[1];
  std::vector<float> parameters[4];  // scale, bias, mean, variance
  for (size_t i = 0; i < 4; ++i) {
    parameters[i] = ConstantFloats(spec, i + 1);
    if (parameters[i].size() != channels) {
      Refuse(spec,
             fmt::format("input {} has {} values for {} channels", i + 1, parameters[i].size(), channels));
    }
  }
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

std::vector<OpImporter> BatchNormImporters() { return {{"BatchNormalization", BuildBatchNorm}}; }

}  // namespace tilesmith
