// A device computes: it has memory, builds kernels, runs them and times them. Tuner, executor and costs go
// through this interface; what a device is made of (cores, caches, instructions) only its own folder knows.
// There are this process's cores (templates/cpu_device) and NVIDIA GPUs (templates/cuda_device). Another one
// is a folder like these, lines in templates/device_list.cc, and templates that say they are for it
// (ConvTemplate::DeviceKind).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layouts/base/error.h"
#include "layouts/base/kernel.h"
#include "layouts/base/stop_flag.h"
#include "layouts/base/target.h"
#include "layouts/base/thread_team.h"
#include "layouts/tensor.h"
#include "ops/base/op.h"
#include "templates/base/conv_template.h"

namespace tilesmith {

// Freed with its last owner.
struct DeviceMemory {
  std::shared_ptr<void> data;
  size_t bytes = 0;
};

// The device has failed under a kernel and answers this process no more, only another one.
class DeviceLost : public Error {
 public:
  explicit DeviceLost(const std::string& message) : Error(ErrorCode::kEnvironment, message) {}
};

// A kernel and what it works on, in memory that kernels of the device reach.
struct Launch {
  const Kernel* kernel = nullptr;
  std::vector<InputView> inputs;
  OutputView output;
  void* scratch = nullptr;     // kernel->ScratchBytes(device.threads())
  Split split = Split::kEven;  // how each stage's tasks are dealt, where its grid can
  // A thread may begin it once the threads beside it have done their shares of the launch before.
  bool after_neighbours = false;
};

// Runs programs, which are launches one after the other. One thread at a time.
class Stream {
 public:
  virtual ~Stream() = default;
  // Returns when all is done. When a kernel throws, or with Error(kInterrupted) once the stream's stop flag
  // is set, the rest is skipped and the first exception is thrown here. `seconds`, when not empty, gets the
  // duration of each launch. Allocates nothing.
  virtual void Run(std::span<const Launch> program, std::span<double> seconds) = 0;
  // The same by all of the device's threads, though fewer might be faster just now: for comparisons.
  virtual void RunByAll(std::span<const Launch> program) { Run(program, {}); }
};

// All functions are thread-safe, but timings must not overlap with anything else that the device runs.
class Device {
 public:
  Device(Target target, int threads) : target_(std::move(target)), threads_(threads) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Target& target() const { return target_; }
  // That share a kernel's tasks.
  int threads() const { return threads_; }

  // Zero-filled, aligned to 64 bytes. Throws Error(kEnvironment) naming the size when memory is short.
  virtual DeviceMemory Allocate(size_t bytes) const = 0;
  // Whether kernels work on the process's own memory as well, so that nothing has to be moved.
  virtual bool ReadsHostMemory() const = 0;
  virtual void Upload(const void* host, void* device, size_t bytes) const = 0;
  virtual void Download(const void* device, void* host, size_t bytes) const = 0;

  // Weights and constants of what is built are read from the process's memory. The kernel refers to the op.
  virtual std::unique_ptr<Kernel> BuildOp(const Op& op, const KernelRequest& request) const = 0;
  // As ConvTemplate::Build, whose preconditions and errors it has.
  virtual std::unique_ptr<ConvKernel> BuildConv(const ConvTemplate& conv_template,
                                                const ConvWorkload& workload, const Config& config,
                                                const ConvWeights& weights) const = 0;
  // These will be built next: what of that takes long is done now, on all cores. What fails will fail then.
  virtual void BuildAhead(const ConvWorkload& /*workload*/,
                          std::span<const std::pair<const ConvTemplate*, Config>> /*builds*/,
                          const ConvWeights& /*weights*/) const {}
  // One input, one output: the same tensor in another layout.
  virtual std::unique_ptr<Kernel> BuildTransform(const Shape& shape, const Layout& from,
                                                 const Layout& to) const = 0;
  // One input, one output, which do not overlap: `images` runs of `image_bytes` contiguous bytes each, at
  // the views' batch strides.
  virtual std::unique_ptr<Kernel> BuildCopy(int64_t images, int64_t image_bytes) const = 0;

  // Whether one of these kernels computes in the process instead, its tensors being brought there and back.
  virtual bool RunsInProcess(const Kernel& /*kernel*/) const { return false; }

  // `stop`, which may be null, outlives the stream.
  virtual std::unique_ptr<Stream> NewStream(const StopFlag* stop) const = 0;

  // Seconds of one launch by itself, by the process's clock.
  virtual double Time(const Kernel& kernel, const KernelArgs& args) const = 0;
  // A launch that can be timed again and again, each time on tensors in the state that their producers leave
  // them in, each thread's share in its own caches: each call runs it once and returns its seconds. Kernel
  // and tensors, which lie in the process's memory, outlive it.
  virtual std::function<double()> AfterProducers(const Kernel& kernel, std::span<Tensor* const> inputs,
                                                 Tensor& output) const = 0;
  // Seconds of a transform between two different layouts, as networks have to wait for it.
  virtual double TimeTransform(const Shape& shape, const Layout& from, const Layout& to) const = 0;
  // After the call the memory is in none of the device's caches.
  virtual void Evict(std::span<const std::byte> memory) const = 0;

 private:
  const Target target_;
  const int threads_;
};

using DevicePtr = std::shared_ptr<const Device>;

// What the process computes on beside the device: the device itself where that is the process's cores.
inline OpMachine HostOf(const Device& device) {
  const bool is_host = device.target().device == kCpuDevice;
  return {is_host ? device.target() : DetectCpu(), device.threads()};
}

// What this machine has of that kind (Target::device): of several, the first. Throws Error(kUsage) for an
// unknown kind, and Error(kEnvironment) where there is none.
Target DetectTarget(std::string_view kind);

// The device of the target's kind, with so many threads, which wait for each other as `wait` says. Throws
// Error(kEnvironment) naming a kind that this build has no device for.
DevicePtr OpenDevice(const Target& target, int threads, WaitPolicy wait = WaitPolicy::kSleep);

}  // namespace tilesmith
