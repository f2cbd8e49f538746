#include "templates/cuda_winograd/template.h"

#include "templates/base/schedule_template.h"
#include "templates/cuda_winograd/config.h"
#include "templates/cuda_winograd/schedule.h"

namespace tilesmith {

const ConvTemplate& CudaWinogradTemplate() {
  static const DeviceTemplate<cuda_winograd::Schedule> instance({.name = "cuda_winograd",
                                                                 .device = kCudaDevice,
                                                                 .supports = cuda_winograd::Supports,
                                                                 .preset_decides = true,
                                                                 .space = cuda_winograd::Space,
                                                                 .preset = cuda_winograd::Default,
                                                                 .read = cuda_winograd::ReadSchedule,
                                                                 .error_factor = cuda_winograd::ErrorFactor});
  return instance;
}

}  // namespace tilesmith
