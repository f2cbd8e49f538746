// An NVIDIA GPU as a device: templates' and ops' programs, compiled by NVRTC, on memory of its own.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "templates/cuda_device/context.h"
#include "templates/device/device.h"

namespace tilesmith {
namespace cuda {

// A GPU's clock, by NVML, where its library is.
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

}  // namespace cuda

// The first GPU's. Throws Error(kEnvironment), in one line, where there is none or no driver.
Target DetectCuda();

class CudaDevice final : public Device {
 public:
  // Throws as DetectCuda, and where the first GPU is another than `target`.
  explicit CudaDevice(const Target& target);
  ~CudaDevice() override;

  DeviceMemory Allocate(size_t bytes) const override;
  bool ReadsHostMemory() const override { return false; }
  void Upload(const void* host, void* device, size_t bytes) const override;
  void Download(const void* device, void* host, size_t bytes) const override;

  // Where there is no program for an op (op_programs.h) the process's own kernel runs, between copies. A
  // convolution of bytes is cuda_tensor_int8's default where that supports it.
  std::unique_ptr<Kernel> BuildOp(const Op& op, const KernelRequest& request) const override;
  std::unique_ptr<ConvKernel> BuildConv(const ConvTemplate& conv_template, const ConvWorkload& workload,
                                        const Config& config, const ConvWeights& weights) const override;
  // Compiles in as many threads as there are cores.
  void BuildAhead(const ConvWorkload& workload,
                  std::span<const std::pair<const ConvTemplate*, Config>> builds,
                  const ConvWeights& weights) const override;
  std::unique_ptr<Kernel> BuildTransform(const Shape& shape, const Layout& from,
                                         const Layout& to) const override;
  std::unique_ptr<Kernel> BuildCopy(int64_t images, int64_t image_bytes) const override;
  bool RunsInProcess(const Kernel& kernel) const override;

  // A CudaStream.
  std::unique_ptr<Stream> NewStream(const StopFlag* stop) const override;
  // Between two events of the GPU: the mean of some launches in a graph, whose number depends on how long the
  // first takes; right after Evict, of one launch, which is queued before the eviction is over. While the
  // clock is below what it was, up to twice again.
  double Time(const Kernel& kernel, const KernelArgs& args) const override;
  // Behind launches of its own, which leave its tensors in the L2 where they fit.
  std::function<double()> AfterProducers(const Kernel& kernel, std::span<Tensor* const> inputs,
                                         Tensor& output) const override;
  double TimeTransform(const Shape& shape, const Layout& from, const Layout& to) const override;
  // Whatever the memory is: twice the L2's size is written, which leaves nothing else in it.
  void Evict(std::span<const std::byte> memory) const override;

 private:
  struct Timing;
  struct Transfers;

  const cuda::ContextPtr context_;
  const std::unique_ptr<Transfers> transfers_;
  mutable std::mutex mutex_;  // of timing_
  const std::unique_ptr<Timing> timing_;
};

}  // namespace tilesmith
