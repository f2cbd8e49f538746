#include "templates/cpu_device/cpu_device.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "layouts/base/sizes.h"
#include "layouts/base/thread_team.h"
#include "layouts/measure/cache_eviction.h"
#include "layouts/measure/clock.h"
#include "layouts/producer_state.h"
#include "layouts/transform.h"
#include "layouts/transform_benchmark.h"
#include "templates/cpu_device/team_stream.h"
#include "templates/int8/byte_conv.h"

namespace tilesmith {
namespace {

class CopyKernel : public Kernel {
 public:
  CopyKernel(int64_t images, int64_t image_bytes)
      : images_(images), image_bytes_(image_bytes), chunks_(CeilDiv(image_bytes, kChunkBytes)) {}

  int64_t Tasks(int) const override { return images_ * chunks_; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const InputView& input = args.inputs[0];
    for (int64_t task = range.begin; task < range.end;) {
      const int64_t image = task / chunks_;
      const int64_t end = std::min(range.end, (image + 1) * chunks_);
      const int64_t first = (task - image * chunks_) * kChunkBytes;
      const int64_t last = std::min((end - image * chunks_) * kChunkBytes, image_bytes_);
      std::memcpy(args.output.image<std::byte>(image) + first, input.image<std::byte>(image) + first,
                  last - first);
      task = end;
    }
  }

 private:
  static constexpr int64_t kChunkBytes = 4096;
  const int64_t images_, image_bytes_, chunks_;
};

// A kernel with all that it needs to run again and again.
class RunAfterProducers {
 public:
  RunAfterProducers(const Kernel& kernel, std::span<Tensor* const> inputs, Tensor& output, int threads)
      : kernel_(kernel),
        tensors_(inputs.begin(), inputs.end()),
        output_(output.output_view()),
        threads_(threads),
        scratch_(static_cast<size_t>(kernel.ScratchBytes(threads))) {
    for (const Tensor* input : inputs) inputs_.push_back(input->input_view());
    tensors_.push_back(&output);
  }

  double Once() {
    const KernelArgs args{inputs_, output_, scratch_.data()};
    double seconds = 0;
    SpinBarrier barrier(threads_);
    FirstError error;
    RunOnTeam(threads_, [&](int thread) {
      for (Tensor* tensor : tensors_) WriteAsProducer(tensor->raw(), tensor->bytes(), thread, threads_);
      barrier.Wait();
      const double begin = NowSeconds();
      RunShare(kernel_, args, thread, threads_, barrier, error);
      barrier.Wait();
      if (thread == 0) seconds = NowSeconds() - begin;
    });
    error.Rethrow();
    return seconds;
  }

 private:
  const Kernel& kernel_;
  std::vector<Tensor*> tensors_;
  const OutputView output_;
  const int threads_;
  AlignedBuffer scratch_;
  std::vector<InputView> inputs_;
};

}  // namespace

std::unique_ptr<Kernel> MakeCopyKernel(int64_t images, int64_t image_bytes) {
  return std::make_unique<CopyKernel>(images, image_bytes);
}

DeviceMemory CpuDevice::Allocate(size_t bytes) const {
  const auto buffer = std::make_shared<AlignedBuffer>(bytes);
  return {{buffer, buffer->data()}, bytes};
}

void CpuDevice::Upload(const void* host, void* device, size_t bytes) const {
  std::memcpy(device, host, bytes);
}
void CpuDevice::Download(const void* device, void* host, size_t bytes) const {
  std::memcpy(host, device, bytes);
}

std::unique_ptr<Kernel> BuildHostOp(const Op& op, const KernelRequest& request) {
  if (const auto* conv = dynamic_cast<const QuantizedConvOp*>(&op)) {
    if (const auto untuned = UntunedByteConv(conv->workload(), request.layout, request.cpu))
      return untuned->conv_template->Build(conv->workload(), untuned->config, request.cpu,
                                           {.quantized = conv, .parts = request.parts});
  }
  return MakeOpKernel(op, request);
}

std::unique_ptr<Kernel> CpuDevice::BuildOp(const Op& op, const KernelRequest& request) const {
  return BuildHostOp(op, request);
}

std::unique_ptr<ConvKernel> CpuDevice::BuildConv(const ConvTemplate& conv_template,
                                                 const ConvWorkload& workload, const Config& config,
                                                 const ConvWeights& weights) const {
  return conv_template.Build(workload, config, target(), weights);
}

std::unique_ptr<Kernel> CpuDevice::BuildTransform(const Shape& shape, const Layout& from,
                                                  const Layout& to) const {
  return MakeTransformKernel(shape, from, to, target());
}

std::unique_ptr<Kernel> CpuDevice::BuildCopy(int64_t images, int64_t image_bytes) const {
  return MakeCopyKernel(images, image_bytes);
}

std::unique_ptr<Stream> CpuDevice::NewStream(const StopFlag* stop) const {
  return std::make_unique<TeamStream>(threads(), wait_, stop);
}

double CpuDevice::Time(const Kernel& kernel, const KernelArgs& args) const {
  return SecondsOf([&] { RunKernel(kernel, args, threads()); });
}

std::function<double()> CpuDevice::AfterProducers(const Kernel& kernel, std::span<Tensor* const> inputs,
                                                  Tensor& output) const {
  return
      [run = std::make_shared<RunAfterProducers>(kernel, inputs, output, threads())] { return run->Once(); };
}

double CpuDevice::TimeTransform(const Shape& shape, const Layout& from, const Layout& to) const {
  return MeasureTransform(shape, from, to, target(), threads()).seconds;
}

void CpuDevice::Evict(std::span<const std::byte> memory) const { EvictFromCaches(memory); }

}  // namespace tilesmith
