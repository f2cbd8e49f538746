// cuDNN's convolutions as a template: nothing to tune, but what ours stand beside, in plans as well. Its
// configs are the algorithms; which of them a workload has, only building one on a GPU tells.
//
// The knobs of cudnn, and which workloads it is for.
#pragma once

#include <utility>
#include <vector>

#include "templates/base/conv_template.h"

namespace tilesmith {
namespace cudnn {

// A call of cuDNN that computes a workload.
struct Call {
  ConvWorkload workload;
  bool nhwc = false;               // else NCHW
  DataType type = DataType::kF32;  // or bf16: of tensors, filters and bias; sums are f32
  int algorithm = 0;               // cudnnConvolutionFwdAlgo_t
  // Bias, residual and activation in the convolution's call; else in calls behind it.
  bool fused = false;
  bool tf32 = false;  // may round what it multiplies
};

// The algorithm as NVIDIA's documentation names it, without what all begin with: "IMPLICIT_GEMM".
std::string_view AlgorithmName(int64_t algorithm);

}  // namespace cudnn

// What Build gives: the call and its weights, which no process can run by itself (templates/cuda_device
// does).
class CudnnConv final : public ConvKernel {
 public:
  CudnnConv(cudnn::Call call, const ConvWeights& weights);
  const cudnn::Call& call() const { return call_; }
  // The weights in the call's type, in words of four bytes: as its layout has them, and behind them a bias,
  // of zeros where the workload has none.
  const std::vector<float>& weights() const { return weights_; }

  int64_t Tasks(int) const override { return 1; }
  void Run(const KernelArgs&, int, TaskRange) const override;
  std::span<const std::byte> PackedWeights() const override { return std::as_bytes(std::span(weights_)); }

 private:
  const cudnn::Call call_;
  std::vector<float> weights_;
};

const ConvTemplate& CudnnTemplate();

}  // namespace tilesmith
