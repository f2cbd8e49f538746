// The list of devices. A new one is a line in each of these.
#include <fmt/format.h>

#include "layouts/base/error.h"
#include "templates/cpu_device/cpu_device.h"
#include "templates/cuda_device/cuda_device.h"
#include "templates/device/device.h"

namespace tilesmith {
namespace {

[[noreturn]] void Unknown(ErrorCode code, std::string_view kind) {
  throw Error(code,
              fmt::format("no device of kind \"{}\" here (known: {}, {})", kind, kCpuDevice, kCudaDevice));
}

}  // namespace

DevicePtr OpenDevice(const Target& target, int threads, WaitPolicy wait) {
  if (target.device == kCpuDevice) return std::make_shared<const CpuDevice>(target, threads, wait);
  if (target.device == kCudaDevice) return std::make_shared<const CudaDevice>(target);
  Unknown(ErrorCode::kEnvironment, target.device);
}

Target DetectTarget(std::string_view kind) {
  if (kind == kCpuDevice) return DetectCpu();
  if (kind == kCudaDevice) return DetectCuda();
  Unknown(ErrorCode::kUsage, kind);
}

}  // namespace tilesmith
