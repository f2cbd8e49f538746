// The knobs of cuda_direct and cuda_tensor, read once from a Config, and which workloads they are for.
#pragma once

#include "layouts/base/target.h"
#include "templates/base/conv_template.h"
#include "templates/cuda_gemm/product.h"

namespace tilesmith::cuda_gemm {

Product ReadDirect(const ConvWorkload& workload, const Config& config, const Target& target);
Product ReadTensor(const ConvWorkload& workload, const Config& config, const Target& target);

Support SupportsDirect(const ConvWorkload& workload, const Target& target);
Support SupportsTensor(const ConvWorkload& workload, const Target& target);
ConfigSpace DirectSpace(const ConvWorkload& workload, const Target& target);
ConfigSpace TensorSpace(const ConvWorkload& workload, const Target& target);
Config DirectDefault(const ConvWorkload& workload, const Target& target);
Config TensorDefault(const ConvWorkload& workload, const Target& target);

// Of cuda_tensor, from how far TF32 rounds operands.
double TensorErrorFactor(const ConvWorkload& workload, const Config& config);

}  // namespace tilesmith::cuda_gemm
