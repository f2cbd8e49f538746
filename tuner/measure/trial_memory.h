// What trials work on, in memory that the device's kernels reach: the process's own, or copies of it there.
#pragma once

#include <map>

#include "templates/device/device.h"
#include "tuner/measure/problem_data.h"

namespace tilesmith {

// One thread at a time.
class TrialMemory {
 public:
  explicit TrialMemory(DevicePtr device) : device_(std::move(device)) {}

  // Brought there the first time; the tensor outlives this and does not change.
  InputView Input(const Tensor& tensor);
  // As it is now, guards included. The output outlives this.
  OutputView Output(GuardedOutput& output);
  // What a kernel has made of it, guards included. Precondition: Output was called.
  void BringBack(GuardedOutput& output) const;
  // At least so many bytes, the same for all trials.
  void* Scratch(size_t bytes);
  int64_t bytes() const;

 private:
  const DevicePtr device_;
  std::map<const void*, DeviceMemory> brought_;  // by where it lies in the process; empty if that is enough
  DeviceMemory scratch_;
};

}  // namespace tilesmith
