#include "templates/cuda_device/clock_watch.h"

#include <dlfcn.h>

#include <algorithm>

namespace tilesmith::cuda {
namespace {

template <typename Function>
bool FindIn(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

ClockWatch::ClockWatch(const std::string& bus_id) {
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  int (*init)() = nullptr;
  int (*find)(const char*, void**) = nullptr;
  if (!FindIn(library, "nvmlInit_v2", init) || !FindIn(library, "nvmlDeviceGetHandleByPciBusId_v2", find) ||
      !FindIn(library, "nvmlDeviceGetClockInfo", clock_))
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
