// The configs that tasks of a network try first are built on all cores while the first of them is measured
// already.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "templates/device/device.h"
#include "tuner/network_tuner.h"

namespace tilesmith {

// Of devices that compile what they run and keep it where workers find it; others have nothing to build
// ahead. The first task is its worker's, and so are those that have been begun, that are fused, or whose
// weights are bytes.
class FirstBuilds {
 public:
  // Returns at once. `tasks` must outlive it.
  FirstBuilds(DevicePtr device, const std::vector<NetworkTask>& tasks);
  // Waits for what is being built, and leaves the rest.
  ~FirstBuilds();
  FirstBuilds(const FirstBuilds&) = delete;
  FirstBuilds& operator=(const FirstBuilds&) = delete;

 private:
  void BuildOneByOne();

  const DevicePtr device_;
  const std::vector<NetworkTask>& tasks_;
  std::atomic<size_t> next_ = 1;
  std::vector<std::jthread> threads_;
};

}  // namespace tilesmith
