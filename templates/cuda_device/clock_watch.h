// A GPU's clock, by NVML, where its library is.
#pragma once

#include <string>

namespace tilesmith::cuda {

class ClockWatch {
 public:
  // Watches the GPU at that place of the PCI bus.
  explicit ClockWatch(const std::string& bus_id);

  // The clock of its multiprocessors, now; 0 where that is not known.
  double Megahertz() const;
  // Whether it has not fallen more than a little below the fastest seen so far; true where it is not known.
  bool IsFull();

 private:
  int (*clock_)(void* device, int domain, unsigned* megahertz) = nullptr;
  void* device_ = nullptr;
  double fastest_ = 0;
};

}  // namespace tilesmith::cuda
