// A kernel of ops as one that templates build.
#pragma once

#include <memory>
#include <utility>

#include "templates/base/conv_template.h"

namespace tilesmith {

class ForwardedKernel final : public ConvKernel {
 public:
  // packed: the weights as the kernel, which holds them, reads them; empty where there are none.
  explicit ForwardedKernel(std::unique_ptr<Kernel> kernel, std::span<const std::byte> packed = {})
      : kernel_(std::move(kernel)), packed_(packed) {}

  int Stages() const override { return kernel_->Stages(); }
  int64_t Tasks(int stage) const override { return kernel_->Tasks(stage); }
  TaskGrid Grid(int stage) const override { return kernel_->Grid(stage); }
  void Run(const KernelArgs& args, int stage, TaskRange range) const override {
    kernel_->Run(args, stage, range);
  }
  int64_t ScratchBytes(int threads) const override { return kernel_->ScratchBytes(threads); }
  std::span<const std::byte> PackedWeights() const override { return packed_; }

 private:
  const std::unique_ptr<Kernel> kernel_;
  const std::span<const std::byte> packed_;
};

}  // namespace tilesmith
