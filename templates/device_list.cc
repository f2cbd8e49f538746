// The list of devices. A new one is a line here.
#include <fmt/format.h>

#include "layouts/base/error.h"
#include "templates/cpu_device/cpu_device.h"
#include "templates/device/device.h"

namespace tilesmith {

DevicePtr OpenDevice(const Target& target, int threads, WaitPolicy wait) {
  if (target.device == kCpuDevice) return std::make_shared<const CpuDevice>(target, threads, wait);
  throw Error(ErrorCode::kEnvironment,
              fmt::format("no device of kind \"{}\" here (known: {})", target.device, kCpuDevice));
}

}  // namespace tilesmith
