#include "templates/cuda_device/compiler.h"

#include <fmt/format.h>

#include <array>
#include <memory>

#include "layouts/base/error.h"
#include "templates/cuda_device/driver.h"

namespace tilesmith::cuda {

std::string Compile(const std::string& text, const std::string& name, int compute) {
  const Nvrtc& nvrtc = LoadedNvrtc();
  const auto check = [&](int result) {
    if (result != kSuccess)
      throw Error(ErrorCode::kInternal, fmt::format("NVRTC on {}: {}", name, nvrtc.error_string(result)));
  };
  CompilationHandle program = nullptr;
  check(nvrtc.create(&program, text.c_str(), "kernels.cu", 0, nullptr, nullptr));
  const std::unique_ptr<CompilationHandle, int (*)(CompilationHandle*)> owner(&program, nvrtc.destroy);
  const std::string arch = fmt::format("-arch=sm_{}", compute);
  const std::array<const char*, 2> options = {arch.c_str(), "-std=c++17"};
  if (const int result = nvrtc.compile(program, static_cast<int>(options.size()), options.data());
      result != kSuccess) {
    size_t bytes = 0;
    nvrtc.log_bytes(program, &bytes);
    std::string log(bytes, '\0');
    if (bytes > 0) nvrtc.log(program, log.data());
    throw Error(ErrorCode::kInternal,
                fmt::format("NVRTC on {}: {}: {}", name, nvrtc.error_string(result), log.substr(0, 2000)));
  }
  size_t bytes = 0;
  check(nvrtc.cubin_bytes(program, &bytes));
  std::string cubin(bytes, '\0');
  check(nvrtc.cubin(program, cubin.data()));
  return cubin;
}

}  // namespace tilesmith::cuda
