#include "templates/cudnn/template.h"

#include <algorithm>
#include <cstring>

#include "layouts/base/check.h"
#include "layouts/data_type.h"
#include "templates/base/schedule_template.h"

namespace tilesmith {
namespace cudnn {

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
