// What every task of a network tries first, built on all cores while the first of them are measured already.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "templates/device/device.h"
#include "tuner/network_tuner.h"

namespace tilesmith {

// Of devices that compile what they run and keep it where workers find it; others have nothing to build
// ahead. A task whose weights are bytes is left to its worker, which has their quantisation.
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
  std::atomic<size_t> next_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace tilesmith
