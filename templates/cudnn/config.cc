#include "templates/cudnn/config.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "layouts/base/check.h"
#include "layouts/data_type.h"
#include "templates/base/schedule_template.h"

namespace tilesmith {
namespace cudnn {
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

Call ReadCall(const ConvWorkload& workload, const Config& config, const Target& target) {
  return {.workload = workload,
          .nhwc = config.Get("block") == 0,
          .type = static_cast<DataType>(config.Get("type")),
          .algorithm = static_cast<int>(config.Get("algorithm")),
          .fused = config.Get("fused") == 1,
          .tf32 = target.tf32};
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

}  // namespace

std::string_view AlgorithmName(int64_t algorithm) {
  TILESMITH_CHECK(algorithm >= 0 && algorithm < std::ssize(kAlgorithms), "algorithm {}", algorithm);
  return kAlgorithms[static_cast<size_t>(algorithm)];
}

LoopFeatures FeaturesOf(const Call&) { return {}; }
LoopNest NestOf(const Call&) { return {}; }
std::unique_ptr<ConvKernel> BuildKernel(const Call& call, const Target&, const ConvWeights& weights) {
  return std::make_unique<CudnnConv>(call, weights);
}

}  // namespace cudnn

CudnnConv::CudnnConv(cudnn::Call call, const ConvWeights& given) : call_(std::move(call)) {
  const ConvWorkload& w = call_.workload;
  const int64_t channels = w.ic / w.g, taps = w.kh * w.kw;
  weights_.resize(static_cast<size_t>((Checked(w.oc) * channels * taps + w.oc).value()));
  for (int64_t row = 0; row < w.oc * channels; ++row) {
    const int64_t f = row / channels, c = row % channels;
    for (int64_t tap = 0; tap < taps; ++tap)
      weights_[call_.nhwc ? (f * taps + tap) * channels + c : row * taps + tap] =
          given.weights[row * taps + tap];
  }
  if (given.bias != nullptr) std::copy_n(given.bias, w.oc, weights_.end() - w.oc);
  if (call_.type == DataType::kF32) return;
  std::vector<uint16_t> halves(RoundUp(std::ssize(weights_), int64_t{2}));
  std::ranges::transform(weights_, halves.begin(), Bf16Bits);
  weights_.resize(halves.size() / 2);
  std::memcpy(weights_.data(), halves.data(), halves.size() * sizeof(uint16_t));
}

void CudnnConv::Run(const KernelArgs&, int, TaskRange) const {
  TILESMITH_CHECK(false, "cuDNN runs on a CUDA device only");
}

const ConvTemplate& CudnnTemplate() {
  static const DeviceTemplate<cudnn::Call> instance({.name = "cudnn",
                                                     .device = kCudaDevice,
                                                     .supports = cudnn::Supports,
                                                     .space = cudnn::Space,
                                                     .preset = cudnn::Default,
                                                     .read = cudnn::ReadCall,
                                                     .layout_knobs = {"block"},
                                                     .type_knobs = {"type"}});
  return instance;
}

}  // namespace tilesmith
