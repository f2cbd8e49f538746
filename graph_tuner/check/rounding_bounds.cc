#include "graph_tuner/check/rounding_bounds.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "graph_tuner/executor/end_tensors.h"
#include "layouts/base/check.h"
#include "ops/base/rounding.h"
#include "ops/elementwise/batch_norm.h"
#include "templates/base/conv_error.h"

namespace tilesmith {
namespace {

// The activation of what is fused in front.
const Activation& ActivationInFront(const ConvStep& step) {
  const ConvWorkload& w = step.schedule.workload;
  return w.before.empty() ? w.pre.activation : w.before[0].post.activation;
}

// The magnitudes of what the main conv reads. Where an activation in front makes errors that do not shrink
// with its input they are at least 1, so that the errors are a multiple of them.
Tensor InputMagnitudes(const ConvStep& step, const Tensor& data) {
  if (step.first == nullptr) return Absolute(data);
  const ConvWorkload& w = step.schedule.workload;
  Tensor magnitudes = !w.before.empty()   ? static_cast<const ConvOp*>(step.first)->Magnitudes(data, nullptr)
                      : w.pre.scale_shift ? static_cast<const ScaleShiftOp*>(step.first)->Magnitudes(data)
                                          : Absolute(data);
  const float least = ActivationRoundings(ActivationInFront(step), 0) > 0 ? 1 : 0;
  for (int64_t i = 0; i < magnitudes.size(); ++i) {
    float& magnitude = magnitudes.floats()[i];
    magnitude = std::max({magnitude, std::abs(step.middle->floats()[i]), least});
  }
  return magnitudes;
}

// What types of fewer bits add to the bounds of a conv.
Tensor TypedBounds(const ConvStep& step, const Tensor& magnitudes, Tensor bounds) {
  const NodeSchedule& schedule = step.schedule;
  const TypeRounding rounding =
      TypeRoundingOf(*schedule.conv_template, schedule.workload, {schedule.inputs[0], schedule.out});
  if (!rounding.any()) return bounds;
  TILESMITH_CHECK(step.output != nullptr);
  for (int64_t i = 0; i < bounds.size(); ++i) {
    bounds.floats()[i] = static_cast<float>(
        TypedBound(rounding, bounds.floats()[i], magnitudes.floats()[i], step.output->floats()[i]));
  }
  return bounds;
}

Tensor FloatOpBound(const Op& op, const OpRun& run) {
  return run.output.type() == DataType::kF32 ? op.RoundingBound(run) : Tensor(run.output.shape());
}

}  // namespace

Tensor ConversionBound(const Tensor& tensor, DataType stored) {
  Tensor bounds(tensor.shape());
  if (tensor.type() != DataType::kF32 || stored == DataType::kF32) return bounds;
  const auto share = static_cast<float>(HalfUlp(stored));
  for (int64_t i = 0; i < bounds.size(); ++i)
    bounds.floats()[i] = share * std::abs(tensor.floats()[i]) + static_cast<float>(kSmallestBound);
  return bounds;
}

// Where tensors are stored in another type the kernel reads the rounded numbers, and rounds its result.
// What the first does is told exactly by the reference of those numbers.
Tensor OpRoundingBound(const Op& op, std::span<const Tensor* const> inputs, const Tensor& output,
                       DataType stored) {
  if (output.type() != DataType::kF32 || stored == DataType::kF32) return FloatOpBound(op, {inputs, output});
  std::vector<Tensor> rounded;
  std::vector<const Tensor*> pointers;
  rounded.reserve(inputs.size());
  for (const Tensor* input : inputs) {
    rounded.push_back(InLayout(InLayout(*input, Layout::Nchw(stored)), Layout::Nchw()));
    pointers.push_back(&rounded.back());
  }
  const Tensor read = op.Reference(pointers);
  Tensor bounds = FloatOpBound(op, {pointers, read});
  const Tensor of_output = ConversionBound(read, stored);
  for (int64_t i = 0; i < bounds.size(); ++i) {
    const float before = bounds.floats()[i], of_inputs = std::abs(read.floats()[i] - output.floats()[i]);
    bounds.floats()[i] =
        of_inputs + before + of_output.floats()[i] + static_cast<float>(HalfUlp(stored)) * before;
  }
  return bounds;
}

Tensor ConvRoundingBound(const ConvStep& step, std::span<const Tensor* const> inputs) {
  const NodeSchedule& schedule = step.schedule;
  const ConvWorkload& w = step.conv.workload();
  Tensor magnitudes =
      step.conv.Magnitudes(InputMagnitudes(step, *inputs[0]), w.post.sum ? inputs[1] : nullptr);
  double terms = step.conv.Terms();
  if (!schedule.workload.before.empty()) terms += static_cast<const ConvOp*>(step.first)->Terms();
  if (step.first != nullptr) terms += 2 + ActivationRoundings(ActivationInFront(step), 1);
  const double factor = schedule.conv_template->ErrorFactor(schedule.workload, schedule.config);
  const double slope = step.first != nullptr ? Slope(ActivationInFront(step)) : 1;
  if (factor == 1)
    return TypedBounds(step, magnitudes,
                       BoundsOf(magnitudes, slope * SumRoundings(terms), w.post.activation));
  std::fill_n(magnitudes.floats(), magnitudes.size(),
              *std::max_element(magnitudes.floats(), magnitudes.floats() + magnitudes.size()));
  return TypedBounds(step, magnitudes, BoundsOf(magnitudes, slope * factor * terms, w.post.activation));
}

}  // namespace tilesmith
