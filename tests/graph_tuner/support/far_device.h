// A device that is not this process: its memory is its own, and one thread does everything, in order. Nothing
// but host code stands behind it, but whoever hands it memory that was not brought there is caught.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "layouts/base/thread_team.h"
#include "layouts/measure/clock.h"
#include "layouts/transform.h"
#include "templates/cpu_device/cpu_device.h"
#include "templates/device/device.h"

namespace tilesmith {

class FarDevice final : public Device {
 public:
  explicit FarDevice(const Target& target) : Device(target, 1), memory_(std::make_shared<Memory>()) {}

  DeviceMemory Allocate(size_t bytes) const override {
    auto buffer = std::make_shared<AlignedBuffer>(bytes);
    void* const data = buffer->data();
    memory_->Add(data, bytes);
    return {std::shared_ptr<void>(data, [buffer, memory = memory_](void* freed) { memory->Remove(freed); }),
            bytes};
  }
  bool ReadsHostMemory() const override { return false; }
  void Upload(const void* host, void* device, size_t bytes) const override {
    EXPECT_TRUE(Owns(device, bytes));
    std::memcpy(device, host, bytes);
    ++uploads;
  }
  void Download(const void* device, void* host, size_t bytes) const override {
    EXPECT_TRUE(Owns(device, bytes));
    std::memcpy(host, device, bytes);
    ++downloads;
  }

  std::unique_ptr<Kernel> BuildOp(const Op& op, const KernelRequest& request) const override {
    ++built;
    return MakeOpKernel(op, request);
  }
  std::unique_ptr<ConvKernel> BuildConv(const ConvTemplate& conv_template, const ConvWorkload& workload,
                                        const Config& config, const ConvWeights& weights) const override {
    ++built;
    return conv_template.Build(workload, config, target(), weights);
  }
  std::unique_ptr<Kernel> BuildTransform(const Shape& shape, const Layout& from,
                                         const Layout& to) const override {
    ++built;
    return MakeTransformKernel(shape, from, to, target());
  }
  std::unique_ptr<Kernel> BuildCopy(int64_t images, int64_t image_bytes) const override {
    ++built;
    return MakeCopyKernel(images, image_bytes);
  }

  std::unique_ptr<Stream> NewStream(const StopFlag* stop) const override {
    return std::make_unique<FarStream>(*this, stop);
  }
  double Time(const Kernel& kernel, const KernelArgs& args) const override {
    return SecondsOf([&] { RunKernel(kernel, args, 1); });
  }
  std::function<double()> AfterProducers(const Kernel& kernel, std::span<Tensor* const> inputs,
                                         Tensor& output) const override {
    const auto bytes = [](const Tensor& tensor) { return static_cast<size_t>(tensor.bytes()); };
    std::vector<DeviceMemory> memory;
    Launch launch{.kernel = &kernel, .inputs = {}, .output = output.output_view()};
    for (const Tensor* input : inputs) {
      memory.push_back(Allocate(bytes(*input)));
      Upload(input->raw(), memory.back().data.get(), memory.back().bytes);
      InputView view = input->input_view();
      view.data = memory.back().data.get();
      launch.inputs.push_back(view);
    }
    memory.push_back(Allocate(bytes(output)));
    launch.output.data = memory.back().data.get();
    memory.push_back(Allocate(static_cast<size_t>(kernel.ScratchBytes(1))));
    launch.scratch = memory.back().data.get();
    return [this, memory, launch] {
      std::vector<double> seconds(1);
      NewStream(nullptr)->Run({&launch, 1}, seconds);
      return seconds[0];
    };
  }
  double TimeTransform(const Shape& shape, const Layout& from, const Layout& to) const override {
    Tensor source(shape, from), result(shape, to);
    Tensor* const inputs[] = {&source};
    const auto kernel = BuildTransform(shape, from, to);
    return AfterProducers(*kernel, inputs, result)();
  }
  void Evict(std::span<const std::byte>) const override {}

  // Whether the bytes lie in one allocation.
  bool Owns(const void* data, size_t bytes) const { return memory_->Owns(data, bytes); }
  size_t allocations() const { return memory_->size(); }

  mutable int built = 0, launches = 0, uploads = 0, downloads = 0;

 private:
  class Memory {
   public:
    void Add(const void* data, size_t bytes) { sizes_[reinterpret_cast<uintptr_t>(data)] = bytes; }
    void Remove(const void* data) { sizes_.erase(reinterpret_cast<uintptr_t>(data)); }
    bool Owns(const void* data, size_t bytes) const {
      const auto begin = reinterpret_cast<uintptr_t>(data);
      const auto after = sizes_.upper_bound(begin);
      if (after == sizes_.begin()) return false;
      const auto& [start, size] = *std::prev(after);
      return begin + bytes <= start + size;
    }
    size_t size() const { return sizes_.size(); }

   private:
    std::map<uintptr_t, size_t> sizes_;
  };

  class FarStream final : public Stream {
   public:
    FarStream(const FarDevice& device, const StopFlag* stop) : device_(device), stop_(stop) {}
    void Run(std::span<const Launch> program, std::span<double> seconds) override {
      for (size_t i = 0; i < program.size(); ++i) {
        ThrowIfStopped(stop_);
        const Launch& launch = program[i];
        for (const InputView& input : launch.inputs) EXPECT_TRUE(device_.Owns(input.data, 1));
        EXPECT_TRUE(device_.Owns(launch.output.data, 1));
        if (const int64_t bytes = launch.kernel->ScratchBytes(1); bytes > 0) {
          EXPECT_TRUE(device_.Owns(launch.scratch, static_cast<size_t>(bytes)));
        }
        ++device_.launches;
        const double taken = device_.Time(*launch.kernel, {launch.inputs, launch.output, launch.scratch});
        if (!seconds.empty()) seconds[i] = taken;
      }
    }

   private:
    const FarDevice& device_;
    const StopFlag* stop_;
  };

  const std::shared_ptr<Memory> memory_;
};

}  // namespace tilesmith
