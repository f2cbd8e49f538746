// Activations: elementwise functions cheap enough to fuse behind a conv, and their text form.
//
// What is not a number, here and in all ops, reference and kernels alike:
// - A NaN stays NaN through every activation, relu and clip included, and through sums, means, products,
//   softmax, and Max and Min of two tensors, as in ONNX Runtime.
// - What looks for the largest or smallest element of one tensor (MaxPool, GlobalMaxPool, ReduceMax,
//   ReduceMin) passes over NaNs: infinity with the wrong sign where there is nothing else. ONNX Runtime
//   mostly does, too, but which of its NaNs come through depends on where they lie.
// - Convs take a NaN exactly to the outputs that read it; Winograd's and Strassen's algorithms, and depthwise
//   convs that compute outputs in pairs, also to other outputs of its tile.
// - Infinities follow IEEE 754, and where that gives NaN (hard_swish of -inf, as 0 * inf), so do we; silu of
//   -inf is its limit, 0. Padding channels stay zero whatever the tensor holds.
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

// in'[n, c, y, x] = activation(in[n, c, y, x] * scale[c] + shift[c]), where the input is read. Padding lies
// outside of the input and stays zero.
struct InputOps {
  bool scale_shift = false;
  Activation activation;
  bool any() const { return scale_shift || activation.kind != ActivationKind::kNone; }
  bool operator==(const InputOps&) const = default;
};

}  // namespace tilesmith
