// A kernel of ops, which packs no weights, as one that templates build.
#pragma once

#include <memory>
#include <utility>

#include "templates/base/conv_template.h"

namespace tilesmith {

class ForwardedKernel final : public ConvKernel {
 public:
  explicit ForwardedKernel(std::unique_ptr<Kernel> kernel) : kernel_(std::move(kernel)) {}

  int Stages() const override { return kernel_->Stages(); }
  int64_t Tasks(int stage) const override { return kernel_->Tasks(stage); }
  TaskGrid Grid(int stage) const override { return kernel_->Grid(stage); }
  void Run(const KernelArgs& args, int stage, TaskRange range) const override {
    kernel_->Run(args, stage, range);
  }
  int64_t ScratchBytes(int threads) const override { return kernel_->ScratchBytes(threads); }
  std::span<const std::byte> PackedWeights() const override { return {}; }

 private:
  const std::unique_ptr<Kernel> kernel_;
};

}  // namespace tilesmith
