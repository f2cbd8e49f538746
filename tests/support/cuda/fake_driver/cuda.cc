// A CUDA driver without a GPU: as much of libcuda.so.1 as templates/cuda_device uses. What the fake NVRTC has
// compiled is a library of g++'s (emulation.inc), whose kernels run block by block (block_runner.h). Memory
// that was not allocated here is refused by copies and launches; fresh memory is not zero; work is done as it
// is queued, but for a stream that records a graph. One thread at a time.
//
// Where the file that FAKE_CUDA_FAULT names exists, the next kernel removes it and fails as a real one does
// that reads where it must not: from then on nothing works in the process.
#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/support/cuda/block_runner.h"

namespace tilesmith {
namespace {

constexpr int kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotFound = 500, kIllegalAddress = 700;

using Work = std::function<int()>;
struct Stream {
  bool records = false;
  std::vector<Work> recorded;
};
struct Graph {
  std::vector<Work> work;
};
struct Event {
  double seconds = 0;
};
struct Module {
  void* library = nullptr;
};

int g_failed = kSuccess;  // after a fault, what every call gives
std::map<uintptr_t, size_t>& Allocations() {
  static auto* const allocations = new std::map<uintptr_t, size_t>;
  return *allocations;
}

bool Owns(uintptr_t begin, size_t bytes) {
  const auto after = Allocations().upper_bound(begin);
  if (after == Allocations().begin()) return false;
  const auto& [start, size] = *std::prev(after);
  return begin + bytes <= start + size;
}
bool Owns(const void* data) { return data == nullptr || Owns(reinterpret_cast<uintptr_t>(data), 1); }

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int Do(void* stream, Work work) {
  if (g_failed != kSuccess) return g_failed;
  auto* const queue = static_cast<Stream*>(stream);
  if (!queue->records) return work();
  queue->recorded.push_back(std::move(work));
  return kSuccess;
}

bool FaultIsDue() {
  const char* const path = std::getenv("FAKE_CUDA_FAULT");
  return path != nullptr && unlink(path) == 0;
}

int Launch(EmulatedFunction function, const std::array<int64_t, 3>& grid, int64_t threads, int64_t shared,
           const CudaArguments& arguments) {
  bool owned = Owns(arguments.out) && Owns(arguments.scratch) && Owns(arguments.weights);
  for (const void* in : arguments.in) owned = owned && Owns(in);
  if (!owned || FaultIsDue()) return g_failed = kIllegalAddress;
  RunBlocks(function, grid, threads, shared, arguments);
  return kSuccess;
}

}  // namespace
}  // namespace tilesmith

#define FAKE_CUDA extern "C" [[gnu::visibility("default")]] int
using namespace tilesmith;

FAKE_CUDA cuInit(unsigned) { return kSuccess; }
FAKE_CUDA cuGetErrorName(int error, const char** name) {
  *name = error == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OTHER";
  return kSuccess;
}
FAKE_CUDA cuGetErrorString(int error, const char** text) {
  *text = error == kIllegalAddress ? "an illegal memory access was encountered" : "another error";
  return kSuccess;
}
FAKE_CUDA cuDeviceGetCount(int* count) {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  *count = visible == nullptr || std::strcmp(visible, "0") == 0 || std::strcmp(visible, "1") == 0 ? 1 : 0;
  return kSuccess;
}
FAKE_CUDA cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? kSuccess : kInvalidValue;
}
FAKE_CUDA cuDeviceGetName(char* name, int length, int) {
  std::snprintf(name, static_cast<size_t>(length), "Fake GPU");
  return kSuccess;
}
FAKE_CUDA cuDeviceGetPCIBusId(char* text, int length, int) {
  std::snprintf(text, static_cast<size_t>(length), "0000:00:00.0");
  return kSuccess;
}
FAKE_CUDA cuDeviceGetAttribute(int* value, int attribute, int) {
  const std::map<int, int> values = {{16, 8}, {38, 1 << 20}, {75, 8}, {76, 0}, {97, 166912}};
  const auto found = values.find(attribute);
  if (found == values.end()) return kInvalidValue;
  *value = found->second;
  return kSuccess;
}
FAKE_CUDA cuDevicePrimaryCtxRetain(void** context, int) {
  static int one = 0;
  *context = &one;
  return kSuccess;
}
FAKE_CUDA cuCtxSetCurrent(void*) { return g_failed; }

FAKE_CUDA cuMemAlloc_v2(unsigned long long* memory, size_t bytes) {
  constexpr size_t kAlignment = 256, kMax = size_t{4} << 30;
  if (g_failed != kSuccess) return g_failed;
  if (bytes > kMax) return kOutOfMemory;
  void* const data = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  std::memset(data, 0xff, bytes);
  Allocations()[reinterpret_cast<uintptr_t>(data)] = bytes;
  *memory = reinterpret_cast<unsigned long long>(data);
  return kSuccess;
}
FAKE_CUDA cuMemFree_v2(unsigned long long memory) {
  if (Allocations().erase(memory) == 0) return kInvalidValue;
  std::free(reinterpret_cast<void*>(memory));
  return kSuccess;
}
FAKE_CUDA cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  if (g_failed != kSuccess) return g_failed;
  *memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  std::memset(*memory, 0xff, bytes);
  return kSuccess;
}
FAKE_CUDA cuMemFreeHost(void* memory) {
  std::free(memory);
  return kSuccess;
}
FAKE_CUDA cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, void* stream) {
  if (bytes > 0 && !Owns(to, bytes)) return kInvalidValue;
  return Do(stream, [=] { return std::memcpy(reinterpret_cast<void*>(to), from, bytes), kSuccess; });
}
FAKE_CUDA cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, void* stream) {
  if (bytes > 0 && !Owns(from, bytes)) return kInvalidValue;
  return Do(stream, [=] { return std::memcpy(to, reinterpret_cast<void*>(from), bytes), kSuccess; });
}
FAKE_CUDA cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, void* stream) {
  if (!Owns(to, bytes) || !Owns(from, bytes)) return kInvalidValue;
  return Do(stream, [=] {
    return std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes), kSuccess;
  });
}
FAKE_CUDA cuMemsetD8Async(unsigned long long to, unsigned char value, size_t bytes, void* stream) {
  if (!Owns(to, bytes)) return kInvalidValue;
  return Do(stream, [=] { return std::memset(reinterpret_cast<void*>(to), value, bytes), kSuccess; });
}

FAKE_CUDA cuStreamCreate(void** stream, unsigned) {
  *stream = new Stream;
  return g_failed;
}
FAKE_CUDA cuStreamDestroy_v2(void* stream) {
  delete static_cast<Stream*>(stream);
  return kSuccess;
}
FAKE_CUDA cuStreamSynchronize(void* stream) {
  return static_cast<Stream*>(stream)->records ? kInvalidValue : g_failed;
}
FAKE_CUDA cuEventCreate(void** event, unsigned) {
  *event = new Event;
  return g_failed;
}
FAKE_CUDA cuEventDestroy_v2(void* event) {
  delete static_cast<Event*>(event);
  return kSuccess;
}
FAKE_CUDA cuEventRecord(void* event, void* stream) {
  return Do(stream, [=] { return static_cast<Event*>(event)->seconds = Now(), kSuccess; });
}
FAKE_CUDA cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  *milliseconds =
      static_cast<float>(1e3 * (static_cast<Event*>(end)->seconds - static_cast<Event*>(begin)->seconds));
  return g_failed;
}

// The image is a library, behind its length.
FAKE_CUDA cuModuleLoadData(void** module, const void* image) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, image, sizeof(bytes));
  std::string path =
      (std::getenv("TMPDIR") != nullptr ? std::getenv("TMPDIR") : "/tmp") + std::string("/fake-cubin-XXXXXX");
  const int file = mkstemp(path.data());
  const bool written =
      file >= 0 && write(file, static_cast<const char*>(image) + sizeof(bytes), bytes) == ssize_t(bytes);
  close(file);
  void* const library = written ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(path.c_str());
  if (library == nullptr) return kInvalidValue;
  *static_cast<EmulatedHooks**>(dlsym(library, "ts_hooks")) = HooksOfBlockRunner();
  *module = new Module{library};
  return kSuccess;
}
FAKE_CUDA cuModuleUnload(void* module) {
  dlclose(static_cast<Module*>(module)->library);
  delete static_cast<Module*>(module);
  return kSuccess;
}
FAKE_CUDA cuModuleGetFunction(void** function, void* module, const char* name) {
  *function = dlsym(static_cast<Module*>(module)->library, name);
  return *function == nullptr ? kNotFound : kSuccess;
}
FAKE_CUDA cuFuncSetAttribute(void*, int attribute, int) { return attribute == 8 ? kSuccess : kInvalidValue; }
FAKE_CUDA cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned,
                         unsigned, unsigned shared, void* stream, void** arguments, void**) {
  const CudaArguments copied = *static_cast<const CudaArguments*>(arguments[0]);
  return Do(stream, [=] {
    return Launch(reinterpret_cast<EmulatedFunction>(function), {x, y, z}, threads, shared, copied);
  });
}

FAKE_CUDA cuLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  return Do(stream, [=] { return function(data), kSuccess; });
}

FAKE_CUDA cuStreamBeginCapture_v2(void* stream, int) {
  static_cast<Stream*>(stream)->records = true;
  return g_failed;
}
FAKE_CUDA cuStreamEndCapture(void* stream, void** graph) {
  auto* const queue = static_cast<Stream*>(stream);
  queue->records = false;
  *graph = new Graph{std::move(queue->recorded)};
  queue->recorded.clear();
  return g_failed;
}
FAKE_CUDA cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
  *exec = new Graph(*static_cast<Graph*>(graph));
  return g_failed;
}
FAKE_CUDA cuGraphLaunch(void* exec, void* stream) {
  for (const Work& work : static_cast<Graph*>(exec)->work)
    if (const int result = Do(stream, work); result != kSuccess) return result;
  return kSuccess;
}
FAKE_CUDA cuGraphDestroy(void* graph) {
  delete static_cast<Graph*>(graph);
  return kSuccess;
}
FAKE_CUDA cuGraphExecDestroy(void* exec) {
  delete static_cast<Graph*>(exec);
  return kSuccess;
}
