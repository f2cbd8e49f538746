// NVRTC: texts of CUDA programs to machine code.
#pragma once

#include <string>

namespace tilesmith::cuda {

// A cubin for GPUs of compute capability `compute` / 10, as 90. `name` is for people. Throws Error(kInternal)
// with what the compiler says, Error(kEnvironment) where there is no NVRTC. Thread-safe.
std::string Compile(const std::string& text, const std::string& name, int compute);

}  // namespace tilesmith::cuda
