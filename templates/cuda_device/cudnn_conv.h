// Convolutions by cuDNN as kernels of the device: what ours are set beside, alone and in whole networks.
#pragma once

#include <memory>
#include <string>

#include "templates/cuda_device/context.h"
#include "templates/cudnn/template.h"

namespace tilesmith::cuda {

// `name` is for people. Throws Error(kNoCandidate) where cuDNN has not this algorithm for the workload, and
// Error(kEnvironment) where there is no cuDNN.
std::unique_ptr<ConvKernel> LoadCudnnConv(const ContextPtr& context, std::unique_ptr<CudnnConv> built,
                                          std::string name);

}  // namespace tilesmith::cuda
