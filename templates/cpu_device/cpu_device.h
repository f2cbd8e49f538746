// This process's cores as a device: a team of threads, over which a kernel's tasks are spread.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "layouts/base/kernel.h"
#include "templates/device/device.h"

namespace tilesmith {

// The kernel of an op in the process, for request.cpu: of a convolution of bytes a template's, by its
// default; else the op's own. It refers to the op.
std::unique_ptr<Kernel> BuildHostOp(const Op& op, const KernelRequest& request);

// Copying a tensor from one place to another, in the same layout.
//
// One input, one output, `images` runs of `image_bytes` contiguous bytes each, at the views' batch strides.
// The two must not overlap. Tasks are chunks of whole cache lines.
std::unique_ptr<Kernel> MakeCopyKernel(int64_t images, int64_t image_bytes);

class CpuDevice final : public Device {
 public:
  // The team is the calling thread's (CurrentTeam, layouts/base/thread_team.h), pinned or not.
  CpuDevice(Target target, int threads, WaitPolicy wait) : Device(std::move(target), threads), wait_(wait) {}

  DeviceMemory Allocate(size_t bytes) const override;
  bool ReadsHostMemory() const override { return true; }
  void Upload(const void* host, void* device, size_t bytes) const override;
  void Download(const void* device, void* host, size_t bytes) const override;

  std::unique_ptr<Kernel> BuildOp(const Op& op, const KernelRequest& request) const override;
  std::unique_ptr<ConvKernel> BuildConv(const ConvTemplate& conv_template, const ConvWorkload& workload,
                                        const Config& config, const ConvWeights& weights) const override;
  std::unique_ptr<Kernel> BuildTransform(const Shape& shape, const Layout& from,
                                         const Layout& to) const override;
  std::unique_ptr<Kernel> BuildCopy(int64_t images, int64_t image_bytes) const override;

  // A TeamStream.
  std::unique_ptr<Stream> NewStream(const StopFlag* stop) const override;
  // The parallel region included.
  double Time(const Kernel& kernel, const KernelArgs& args) const override;
  // Timed inside of one parallel region, behind the producers' writes (layouts/producer_state.h).
  std::function<double()> AfterProducers(const Kernel& kernel, std::span<Tensor* const> inputs,
                                         Tensor& output) const override;
  double TimeTransform(const Shape& shape, const Layout& from, const Layout& to) const override;
  void Evict(std::span<const std::byte> memory) const override;

 private:
  const WaitPolicy wait_;
};

}  // namespace tilesmith
