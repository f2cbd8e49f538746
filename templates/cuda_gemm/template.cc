#include "templates/cuda_gemm/template.h"

#include "templates/base/schedule_template.h"
#include "templates/cuda_gemm/config.h"
#include "templates/cuda_gemm/schedule.h"

namespace tilesmith {

const ConvTemplate& CudaDirectTemplate() {
  static const DeviceTemplate<cuda_gemm::Product> instance({.name = "cuda_direct",
                                                            .device = kCudaDevice,
                                                            .supports = cuda_gemm::SupportsProduct,
                                                            .preset_decides = true,
                                                            .space = cuda_gemm::DirectSpace,
                                                            .preset = cuda_gemm::DirectDefault,
                                                            .read = cuda_gemm::ReadDirect});
  return instance;
}

const ConvTemplate& CudaTensorTemplate() {
  static const DeviceTemplate<cuda_gemm::Product> instance({.name = "cuda_tensor",
                                                            .device = kCudaDevice,
                                                            .supports = cuda_gemm::SupportsProduct,
                                                            .preset_decides = true,
                                                            .space = cuda_gemm::TensorSpace,
                                                            .preset = cuda_gemm::TensorDefault,
                                                            .read = cuda_gemm::ReadTensor,
                                                            .error_factor = cuda_gemm::TensorErrorFactor});
  return instance;
}

const ConvTemplate& CudaTensorBf16Template() {
  static const DeviceTemplate<cuda_gemm::Product> instance({.name = "cuda_tensor_bf16",
                                                            .device = kCudaDevice,
                                                            .supports = cuda_gemm::SupportsProduct,
                                                            .preset_decides = true,
                                                            .space = cuda_gemm::Bf16Space,
                                                            .preset = cuda_gemm::Bf16Default,
                                                            .read = cuda_gemm::ReadBf16,
                                                            .type_knobs = {"in_type", "out_type"},
                                                            .factors = DataType::kBf16,
                                                            .error_factor = cuda_gemm::Bf16ErrorFactor});
  return instance;
}

const ConvTemplate& CudaTensorInt8Template() {
  static const DeviceTemplate<cuda_gemm::Product> instance({.name = "cuda_tensor_int8",
                                                            .device = kCudaDevice,
                                                            .bytes = true,
                                                            .supports = cuda_gemm::SupportsInt8,
                                                            .preset_decides = true,
                                                            .space = cuda_gemm::Int8Space,
                                                            .preset = cuda_gemm::Int8Default,
                                                            .read = cuda_gemm::ReadInt8});
  return instance;
}

}  // namespace tilesmith
