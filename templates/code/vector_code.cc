#include "templates/code/vector_code.h"

#include <bit>

#include "layouts/base/check.h"

namespace tilesmith {

using code::Vec;

code::Address VectorCode::Splat(float value) {
  return Constant(std::vector<uint32_t>(vector_floats(), std::bit_cast<uint32_t>(value)));
}

void VectorCode::HoldConstants(const Activation& activation, int first, int count) {
  held_.clear();
  std::vector<float> constants;
  if (activation.kind == ActivationKind::kRelu) constants = {0.0F};
  if (activation.kind == ActivationKind::kClip) constants = {activation.alpha, activation.beta};
  if (static_cast<int>(constants.size()) > count) return;
  for (const float value : constants) {
    const Vec to = Vector(first + static_cast<int>(held_.size()));
    std::bit_cast<uint32_t>(value) == 0 ? Zero(to) : Load(to, Splat(value));
    held_.emplace_back(value, to);
  }
}

Vec VectorCode::InRegister(float value, const Vec& scratch) {
  for (const auto& [constant, held] : held_) {
    if (std::bit_cast<uint32_t>(constant) == std::bit_cast<uint32_t>(value)) return held;
  }
  std::bit_cast<uint32_t>(value) == 0 ? Zero(scratch) : Load(scratch, Splat(value));
  return scratch;
}

// Maximum and minimum return their last operand when either is NaN, so the bound stands before the value.
void VectorCode::Apply(const Activation& activation, const Vec& value, const Vec& scratch) {
  const auto at_least = [&](float low) { Max(value, InRegister(low, scratch), value); };
  const auto at_most = [&](float high) { Min(value, InRegister(high, scratch), value); };
  switch (activation.kind) {
    case ActivationKind::kNone:
      return;
    case ActivationKind::kRelu:
      at_least(0.0F);
      return;
    case ActivationKind::kClip:
      at_least(activation.alpha);
      at_most(activation.beta);
      return;
    case ActivationKind::kLeakyRelu:
      Multiply(scratch, value, Splat(activation.alpha));
      activation.alpha <= 1 ? Max(value, value, scratch) : Min(value, value, scratch);
      return;
    case ActivationKind::kHardSigmoid:
      Load(scratch, Splat(activation.alpha));
      MultiplyThenAdd(value, scratch, Splat(activation.beta));
      at_least(0.0F);
      at_most(1.0F);
      return;
    case ActivationKind::kHardSwish:  // a NaN comes back with the last product
      Load(scratch, Splat(1.0F / 6.0F));
      MultiplyThenAdd(scratch, value, Splat(0.5F));
      Max(scratch, scratch, Splat(0.0F));
      Min(scratch, scratch, Splat(1.0F));
      Multiply(value, value, scratch);
      return;
    case ActivationKind::kSigmoid:
    case ActivationKind::kTanh:
    case ActivationKind::kSilu:
      break;
  }
  TILESMITH_CHECK(false, "activation {} is not fusable", ActivationToString(activation));
}

}  // namespace tilesmith
