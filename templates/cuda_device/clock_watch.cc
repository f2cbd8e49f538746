#include "templates/cuda_device/clock_watch.h"

#include <algorithm>

#include "layouts/base/shared_library.h"

namespace tilesmith::cuda {

ClockWatch::ClockWatch(const std::string& bus_id) {
  void* const library = OpenLibrary("libnvidia-ml.so.1");
  if (library == nullptr) return;
  int (*init)() = nullptr;
  int (*find)(const char*, void**) = nullptr;
  if (!FindFunction(library, "nvmlInit_v2", init) ||
      !FindFunction(library, "nvmlDeviceGetHandleByPciBusId_v2", find) ||
      !FindFunction(library, "nvmlDeviceGetClockInfo", clock_))
    return;
  if (init() != 0 || find(bus_id.c_str(), &device_) != 0) device_ = nullptr;
}

double ClockWatch::Megahertz() const {
  constexpr int kOfMultiprocessors = 1;
  unsigned megahertz = 0;
  if (device_ == nullptr || clock_(device_, kOfMultiprocessors, &megahertz) != 0) return 0;
  return megahertz;
}

bool ClockWatch::IsFull() {
  constexpr double kNearly = 0.97;
  const double now = Megahertz();
  fastest_ = std::max(fastest_, now);
  return now >= kNearly * fastest_;
}

}  // namespace tilesmith::cuda
