#include "templates/cuda_device/driver.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "layouts/base/error.h"
#include "layouts/base/shared_library.h"
#include "templates/device/device.h"

namespace tilesmith::cuda {
namespace {

[[noreturn]] void Fail(const std::string& why) { throw Error(ErrorCode::kEnvironment, why); }

// The first of these that there is. It stays loaded.
void* Load(std::string_view what, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (void* const library = OpenLibrary(name.c_str())) return library;
  Fail(fmt::format("a CUDA device needs {}, which is not installed (looked for {})", what,
                   fmt::join(names, ", ")));
}

template <typename Function>
void Find(void* library, const char* name, Function& function) {
  if (!FindFunction(library, name, function))
    Fail(fmt::format("a CUDA device needs {}, which the installed library lacks", name));
}

Driver LoadDriver() {
  void* const library = Load("NVIDIA's driver", {"libcuda.so.1"});
  Driver d;
  Find(library, "cuInit", d.init);
  Find(library, "cuGetErrorName", d.error_name);
  Find(library, "cuGetErrorString", d.error_string);
  Find(library, "cuDeviceGetCount", d.device_count);
  Find(library, "cuDeviceGet", d.device_get);
  Find(library, "cuDeviceGetName", d.device_name);
  Find(library, "cuDeviceGetAttribute", d.device_attribute);
  Find(library, "cuDeviceGetPCIBusId", d.device_bus_id);
  Find(library, "cuDevicePrimaryCtxRetain", d.retain_context);
  Find(library, "cuCtxSetCurrent", d.set_context);
  Find(library, "cuMemAlloc_v2", d.allocate);
  Find(library, "cuMemFree_v2", d.free);
  Find(library, "cuMemHostAlloc", d.allocate_host);
  Find(library, "cuMemFreeHost", d.free_host);
  Find(library, "cuMemcpyHtoDAsync_v2", d.copy_in);
  Find(library, "cuMemcpyDtoHAsync_v2", d.copy_out);
  Find(library, "cuMemcpyDtoDAsync_v2", d.copy);
  Find(library, "cuMemsetD8Async", d.fill);
  Find(library, "cuStreamCreate", d.stream_create);
  Find(library, "cuStreamDestroy_v2", d.stream_destroy);
  Find(library, "cuStreamSynchronize", d.stream_wait);
  Find(library, "cuEventCreate", d.event_create);
  Find(library, "cuEventDestroy_v2", d.event_destroy);
  Find(library, "cuEventRecord", d.event_record);
  Find(library, "cuEventElapsedTime", d.event_elapsed);
  Find(library, "cuModuleLoadData", d.module_load);
  Find(library, "cuModuleUnload", d.module_unload);
  Find(library, "cuModuleGetFunction", d.module_function);
  Find(library, "cuFuncSetAttribute", d.function_set);
  Find(library, "cuLaunchKernel", d.launch);
  Find(library, "cuStreamBeginCapture_v2", d.capture_begin);
  Find(library, "cuStreamEndCapture", d.capture_end);
  Find(library, "cuGraphInstantiateWithFlags", d.graph_instantiate);
  Find(library, "cuGraphLaunch", d.graph_launch);
  Find(library, "cuGraphDestroy", d.graph_destroy);
  Find(library, "cuGraphExecDestroy", d.graph_exec_destroy);
  d.Check(d.init(0), "starting NVIDIA's driver");
  int count = 0;
  d.Check(d.device_count(&count), "counting GPUs");
  if (count == 0) Fail("a CUDA device was asked for, and NVIDIA's driver sees none");
  return d;
}

Nvrtc LoadNvrtc() {
  void* const library = Load("NVRTC", {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                                       "/usr/local/cuda/lib64/libnvrtc.so"});
  Nvrtc n;
  Find(library, "nvrtcGetErrorString", n.error_string);
  Find(library, "nvrtcVersion", n.version);
  Find(library, "nvrtcCreateProgram", n.create);
  Find(library, "nvrtcDestroyProgram", n.destroy);
  Find(library, "nvrtcCompileProgram", n.compile);
  Find(library, "nvrtcGetProgramLogSize", n.log_bytes);
  Find(library, "nvrtcGetProgramLog", n.log);
  Find(library, "nvrtcGetCUBINSize", n.cubin_bytes);
  Find(library, "nvrtcGetCUBIN", n.cubin);
  return n;
}

// Errors after which every call in the process fails, as the driver's documentation says of each.
bool IsFatal(int result) {
  constexpr std::array kFatal = {214, 700, 702, 710, 714, 715, 716, 717, 718, 719};
  return std::ranges::find(kFatal, result) != kFatal.end();
}

}  // namespace

void Driver::Check(int result, const std::string& doing) const {
  if (result == kSuccess) return;
  const char *name = nullptr, *text = nullptr;
  error_name(result, &name);
  error_string(result, &text);
  const std::string message = fmt::format("{}: {} ({})", doing, text == nullptr ? "unknown error" : text,
                                          name == nullptr ? std::to_string(result) : name);
  if (IsFatal(result)) throw DeviceLost(message);
  Fail(message);
}

const Driver& LoadedDriver() {
  static const Driver driver = LoadDriver();
  return driver;
}

const Nvrtc& LoadedNvrtc() {
  static const Nvrtc nvrtc = LoadNvrtc();
  return nvrtc;
}

}  // namespace tilesmith::cuda
