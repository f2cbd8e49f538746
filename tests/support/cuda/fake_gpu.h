// A GPU that every test has: templates/cuda_device finds the fake driver and compiler (fake_driver) in the
// place of NVIDIA's.
#pragma once

#include <dlfcn.h>
#include <stdlib.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "templates/device/device.h"

namespace tilesmith {

// What a program started with these finds instead of NVIDIA's libraries. What was compiled is kept in the
// build.
inline std::vector<std::string> FakeGpuEnvironment() {
  return {"LD_LIBRARY_PATH=" TILESMITH_FAKE_CUDA, "TMPDIR=" TILESMITH_FAKE_CUDA};
}

// In this process, from the first call on.
inline DevicePtr OpenFakeGpu() {
  static const bool loaded = [] {
    for (const char* library : {TILESMITH_FAKE_CUDA "/libcuda.so.1", TILESMITH_FAKE_CUDA "/libnvrtc.so",
                                TILESMITH_FAKE_CUDA "/libcudnn.so.9"})
      if (dlopen(library, RTLD_NOW | RTLD_LOCAL) == nullptr) throw std::runtime_error(dlerror());
    return setenv("TMPDIR", TILESMITH_FAKE_CUDA, 1) == 0;
  }();
  static_cast<void>(loaded);
  return OpenDevice(DetectTarget(kCudaDevice), 1);
}

}  // namespace tilesmith
