// What the device's kernels are: something that puts work on a queue.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "layouts/base/kernel.h"
#include "ops/base/op.h"
#include "templates/base/conv_template.h"
#include "templates/cuda/program.h"
#include "templates/cuda_device/context.h"
#include "templates/cuda_device/modules.h"

namespace tilesmith::cuda {

class Queued {
 public:
  Queued();
  virtual ~Queued() = default;
  Queued(const Queued&) = delete;
  Queued& operator=(const Queued&) = delete;

  // No other one of the process has it, and none of those that are gone had.
  uint64_t id() const { return id_; }
  // All memory in `args` is the GPU's. Returns before it is done, where OnlyQueues. Thread-safe. Throws
  // Error(kEnvironment) and DeviceLost naming the kernel.
  virtual void Enqueue(const KernelArgs& args, const Queue& queue) const = 0;
  // Whether nothing but the queue's order matters, so that a graph can record it.
  virtual bool OnlyQueues() const { return true; }
  virtual const std::string& name() const = 0;

 private:
  const uint64_t id_;
};

// Precondition: this folder built it.
const Queued& AsQueued(const Kernel& kernel);

// A program whose text is compiled and whose weights are on the GPU. Immutable.
class LoadedProgram {
 public:
  // `name` is for people. Errors as CompiledModule's.
  LoadedProgram(const ContextPtr& context, const CudaProgram& program, std::string name);
  void Enqueue(const KernelArgs& args, const Queue& queue) const;
  const std::string& name() const { return name_; }

 private:
  void CheckAlignment(const KernelArgs& args) const;

  const std::string name_;
  const std::vector<CudaLaunch> launches_;
  const int64_t input_alignment_, output_alignment_;
  const std::shared_ptr<const Module> module_;
  std::vector<FunctionHandle> functions_;  // by launch
  DeviceMemory weights_;
};

// What a CUDA template has built, loaded. `name` is for people. Precondition: it is a CudaConv.
std::unique_ptr<ConvKernel> LoadConv(const ContextPtr& context, std::unique_ptr<ConvKernel> built,
                                     std::string name);
std::unique_ptr<Kernel> LoadOp(const ContextPtr& context, const CudaProgram& program);
// One input, one output: as Device::BuildCopy.
std::unique_ptr<Kernel> MakeDeviceCopy(int64_t images, int64_t image_bytes);
// A kernel of the process's cores between copies of its tensors, `inputs` in `layouts`. `name` is for people.
struct InProcessKernel {
  std::string name;
  std::unique_ptr<Kernel> kernel;
  std::vector<Shape> inputs;
  std::vector<Layout> layouts;
  Shape output;
  Layout layout;
};
std::unique_ptr<Kernel> RunInProcess(const ContextPtr& context, InProcessKernel parts);

}  // namespace tilesmith::cuda
