// The knobs of cudnn, and which workloads it is for.
#pragma once

#include "templates/base/conv_template.h"

namespace tilesmith::cudnn {

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

Call ReadCall(const ConvWorkload& workload, const Config& config, const Target& target);

// The algorithm as NVIDIA's documentation names it, without what all begin with: "IMPLICIT_GEMM".
std::string_view AlgorithmName(int64_t algorithm);

Support Supports(const ConvWorkload& workload, const Target& target);
ConfigSpace Space(const ConvWorkload& workload, const Target& target);
Config Default(const ConvWorkload& workload, const Target& target);

}  // namespace tilesmith::cudnn
