#include "ops/base/rounding.h"

#include <algorithm>
#include <cmath>

namespace tilesmith {
namespace {

float BoundOf(double roundings, double magnitude, const Activation& activation) {
  return static_cast<float>(kRoundingEps * (Slope(activation) * roundings * magnitude +
                                            ActivationRoundings(activation, magnitude)) +
                            kSmallestBound);
}

}  // namespace

double SumRoundings(double terms) { return std::min(terms, 16 * std::sqrt(terms)); }

double Slope(const Activation& activation) {
  switch (activation.kind) {
    case ActivationKind::kLeakyRelu:
    case ActivationKind::kHardSigmoid:
      return std::max(1.0, std::abs(double{activation.alpha}));
    case ActivationKind::kHardSwish:
    case ActivationKind::kSilu:
      return 1.5;
    default:
      return 1;
  }
}

double ActivationRoundings(const Activation& activation, double magnitude) {
  constexpr double kOfFunctions = 8;  // of exp, tanh and the few operations around them
  const double alpha = std::abs(double{activation.alpha}), beta = std::abs(double{activation.beta});
  switch (activation.kind) {
    case ActivationKind::kNone:
    case ActivationKind::kRelu:
    case ActivationKind::kClip:
      return 0;
    case ActivationKind::kLeakyRelu:
      return alpha * magnitude;
    default:
      return kOfFunctions * (std::max(1.0, alpha) * magnitude + beta + 1);
  }
}

Tensor Absolute(const Tensor& tensor) {
  Tensor absolute(tensor.shape());
  std::transform(tensor.floats(), tensor.floats() + tensor.size(), absolute.floats(),
                 [](float x) { return std::abs(x); });
  return absolute;
}

float LargestFinite(const Tensor& tensor) {
  float largest = 0;
  for (int64_t i = 0; i < tensor.size(); ++i)
    if (std::isfinite(tensor.floats()[i])) largest = std::max(largest, std::abs(tensor.floats()[i]));
  return largest;
}

Tensor OfAbsolutes(const Op& op, std::span<const Tensor* const> inputs) {
  std::vector<Tensor> absolutes;
  std::vector<const Tensor*> pointers;
  for (const Tensor* input : inputs) absolutes.push_back(Absolute(*input));
  pointers.reserve(absolutes.size());
  for (const Tensor& absolute : absolutes) pointers.push_back(&absolute);
  return op.Reference(pointers);
}

Tensor BoundsOf(const Tensor& magnitudes, double roundings, const Activation& activation) {
  Tensor bounds(magnitudes.shape());
  const auto fill = [&](const auto& bound_of) {
    std::transform(magnitudes.floats(), magnitudes.floats() + magnitudes.size(), bounds.floats(), bound_of);
  };
  if (ActivationRoundings(activation, 1) == 0) {
    const auto factor = static_cast<float>(kRoundingEps * Slope(activation) * roundings);
    fill([factor](float magnitude) { return factor * magnitude + static_cast<float>(kSmallestBound); });
  } else {
    fill([&](float magnitude) { return BoundOf(roundings, magnitude, activation); });
  }
  return bounds;
}

Tensor BoundsOfLargest(const OpRun& run, double roundings) {
  Tensor magnitudes(run.output.shape());
  std::fill_n(magnitudes.floats(), magnitudes.size(),
              LargestFinite(*run.inputs[0]) + LargestFinite(run.output));
  return BoundsOf(magnitudes, roundings);
}

Tensor RoundedTwice(const OpRun& run) {
  const auto is_float = [](const Tensor* tensor) { return tensor->type() == DataType::kF32; };
  if (!std::ranges::all_of(run.inputs, is_float)) return Tensor(run.output.shape());
  return BoundsOf(Absolute(run.output), 2);
}

}  // namespace tilesmith
