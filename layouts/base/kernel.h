// A Kernel is one computation cut into independent tasks, which the caller spreads over threads.
//
// A kernel has one or more stages; all tasks of a stage may run concurrently and in any order, and a stage
// starts only when the one before it is complete. Kernels hold everything that can be prepared beforehand
// (packed weights, generated code), so Run neither allocates nor locks.
#pragma once

#include <cstdint>
#include <span>

namespace tilesmith {

// Images of a batch need not be adjacent: a concat slice lies inside a larger tensor. The strides are in
// floats, from one image to the next; within an image the layout is dense.
struct InputView {
  const float* data = nullptr;
  int64_t batch_stride = 0;
};
struct OutputView {
  float* data = nullptr;
  int64_t batch_stride = 0;
};

struct KernelArgs {
  std::span<const InputView> inputs;
  OutputView output;
  float* scratch = nullptr;  // Kernel::ScratchFloats floats, 64-byte aligned, shared by all threads
};

struct TaskRange {
  int64_t begin = 0;
  int64_t end = 0;
  int thread = 0;  // which thread of the team runs it, for per-thread parts of the scratch
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual int Stages() const { return 1; }
  virtual int64_t Tasks(int stage) const = 0;
  // Thread-safe for disjoint ranges of one stage, and for different args at any time.
  virtual void Run(const KernelArgs& args, int stage, TaskRange range) const = 0;
  virtual int64_t ScratchFloats(int threads) const {
    (void)threads;
    return 0;
  }
};

}  // namespace tilesmith
