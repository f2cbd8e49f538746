#include "templates/cudnn/config.h"

#include <array>

#include "layouts/base/check.h"

namespace tilesmith::cudnn {
namespace {

constexpr std::array<std::string_view, 8> kAlgorithms = {
    "IMPLICIT_GEMM", "IMPLICIT_PRECOMP_GEMM", "GEMM", "DIRECT", "FFT", "FFT_TILING",
    "WINOGRAD",      "WINOGRAD_NONFUSED"};
constexpr int64_t kPrecomputed = 1;

// What its call that fuses takes, by its documentation: ReLU, or no activation with one of the algorithms.
std::string WhyNotFused(const ConvWorkload& w, int64_t algorithm) {
  const ActivationKind kind = w.post.activation.kind;
  if (kind == ActivationKind::kRelu) return "";
  if (kind != ActivationKind::kNone) return "cuDNN fuses no activation but ReLU";
  if (algorithm != kPrecomputed) return "without an activation cuDNN fuses into IMPLICIT_PRECOMP_GEMM only";
  return w.post.bias || w.post.sum ? "" : "there is nothing to fuse";
}

bool HasActivation(const Activation& activation) {
  switch (activation.kind) {
    case ActivationKind::kNone:
    case ActivationKind::kRelu:
      return true;
    case ActivationKind::kClip:
      return activation.alpha == 0;
    default:
      return false;
  }
}

int64_t Outputs(int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  return (in + 2 * padding - (kernel - 1) * (dilation + 1) - 1) / stride + 1;
}

}  // namespace

Call ReadCall(const ConvWorkload& workload, const Config& config, const Target& target) {
  return {.workload = workload,
          .nhwc = config.Get("block") == 0,
          .type = static_cast<DataType>(config.Get("type")),
          .algorithm = static_cast<int>(config.Get("algorithm")),
          .fused = config.Get("fused") == 1,
          .tf32 = target.tf32};
}

std::string_view AlgorithmName(int64_t algorithm) {
  TILESMITH_CHECK(algorithm >= 0 && algorithm < std::ssize(kAlgorithms), "algorithm {}", algorithm);
  return kAlgorithms[static_cast<size_t>(algorithm)];
}

Support Supports(const ConvWorkload& w, const Target&) {
  if (Outputs(w.ih, w.kh, w.sh, w.ph, w.dh) != w.oh || Outputs(w.iw, w.kw, w.sw, w.pw, w.dw) != w.ow)
    return Support::No("cuDNN pads both sides alike");
  if (!HasActivation(w.post.activation)) return Support::No("cuDNN has no such activation");
  return Support::Yes();
}

ConfigSpace Space(const ConvWorkload& w, const Target&) {
  std::vector<int64_t> algorithms(kAlgorithms.size());
  for (size_t i = 0; i < algorithms.size(); ++i) algorithms[i] = static_cast<int64_t>(i);
  std::vector<Knob> knobs = {{"block", {1, 0}, "both layouts: 1 is NCHW, 0 NHWC"},
                             {"type",
                              {static_cast<int64_t>(DataType::kF32), static_cast<int64_t>(DataType::kBf16)},
                              "how tensors are stored: 0 is f32, 3 bf16"},
                             {"algorithm", std::move(algorithms), "cudnnConvolutionFwdAlgo_t"},
                             {"fused", {1, 0}, "bias, residual and activation in the convolution's call"}};
  return ConfigSpace(std::move(knobs), [w](const Config& config) -> std::string {
    return config.Get("fused") == 1 ? WhyNotFused(w, config.Get("algorithm")) : "";
  });
}

Config Default(const ConvWorkload&, const Target&) {
  Config config;
  config.Set("block", 1);
  config.Set("type", 0);
  config.Set("algorithm", 0);
  config.Set("fused", 0);
  return config;
}

}  // namespace tilesmith::cudnn
