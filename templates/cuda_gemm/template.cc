#include "templates/cuda_gemm/template.h"

#include "templates/base/schedule_template.h"
#include "templates/cuda_gemm/config.h"
#include "templates/cuda_gemm/schedule.h"

namespace tilesmith {

const ConvTemplate& CudaDirectTemplate() {
  static const DeviceTemplate<cuda_gemm::Product> instance({.name = "cuda_direct",
                                                            .device = kCudaDevice,
                                                            .supports = cuda_gemm::SupportsDirect,
                                                            .space = cuda_gemm::DirectSpace,
                                                            .preset = cuda_gemm::DirectDefault,
                                                            .read = cuda_gemm::ReadDirect});
  return instance;
}

const ConvTemplate& CudaTensorTemplate() {
  static const DeviceTemplate<cuda_gemm::Product> instance({.name = "cuda_tensor",
                                                            .device = kCudaDevice,
                                                            .supports = cuda_gemm::SupportsTensor,
                                                            .space = cuda_gemm::TensorSpace,
                                                            .preset = cuda_gemm::TensorDefault,
                                                            .read = cuda_gemm::ReadTensor,
                                                            .error_factor = cuda_gemm::TensorErrorFactor});
  return instance;
}

}  // namespace tilesmith
