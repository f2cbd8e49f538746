// Activations: elementwise functions cheap enough to fuse behind a conv, and their text form.
#pragma once

#include <string>
#include <string_view>

namespace tilesmith {

enum class ActivationKind {
  kNone,         // x
  kRelu,         // max(x, 0)
  kClip,         // min(max(x, alpha), beta)
  kLeakyRelu,    // x >= 0 ? x : alpha * x
  kHardSigmoid,  // min(max(alpha * x + beta, 0), 1)
  kHardSwish,    // x * min(max(x / 6 + 1/2, 0), 1)
  kSigmoid,      // 1 / (1 + exp(-x))
  kTanh,         // tanh(x)
  kSilu,         // x / (1 + exp(-x))
};

struct Activation {
  ActivationKind kind = ActivationKind::kNone;
  float alpha = 0;
  float beta = 0;

  bool operator==(const Activation&) const = default;
  float Apply(float x) const;
  // Piecewise linear or quadratic: no transcendental function, so conv kernels may fuse it.
  bool fusable() const {
    return kind != ActivationKind::kSigmoid && kind != ActivationKind::kTanh && kind != ActivationKind::kSilu;
  }
};

// "relu", "clip:0:6", "leaky_relu:0.1", "hard_sigmoid:0.2:0.5", "hard_swish", "sigmoid", "tanh", "silu"; ""
// for none.
std::string ActivationToString(const Activation& activation);
// The inverse. Throws Error(kUsage) naming the text and the known names.
Activation ParseActivation(std::string_view text);

}  // namespace tilesmith
