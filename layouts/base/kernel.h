// A Kernel is one computation cut into independent tasks, which the caller spreads over threads.
//
// A kernel has one or more stages; all tasks of a stage may run concurrently and in any order, and a stage
// starts only when the one before it is complete. Kernels hold everything that can be prepared beforehand
// (packed weights, generated code), so Run neither allocates nor locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "layouts/base/split.h"

namespace tilesmith {

// Images of a batch need not be adjacent: a concat slice lies inside a larger tensor. The strides are in
// bytes, from one image to the next; within an image the layout is dense.
//
// image<T>(n) is the start of image n, whose elements are of type T, which nothing here knows. Always
// inlined, so that *_isa.cc files may call it.
//
// Of an image that is not all there, blocks of channels may lie nearer than its layout says: `block_shift`
// bytes are added from one to the next. Kernels that know say so (Kernel::ShiftsBlocks).
struct InputView {
  const void* data = nullptr;
  int64_t batch_stride = 0;
  int64_t block_shift = 0;

  template <typename T>
  [[gnu::always_inline]] const T* image(int64_t n) const {
    return reinterpret_cast<const T*>(static_cast<const std::byte*>(data) + n * batch_stride);
  }
};
struct OutputView {
  void* data = nullptr;
  int64_t batch_stride = 0;
  int64_t block_shift = 0;

  template <typename T>
  [[gnu::always_inline]] T* image(int64_t n) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(data) + n * batch_stride);
  }
};

struct KernelArgs {
  std::span<const InputView> inputs;
  OutputView output;
  void* scratch = nullptr;  // Kernel::ScratchBytes bytes, 64-byte aligned, shared by all threads

  // The scratch from this byte on.
  template <typename T>
  [[gnu::always_inline]] T* scratch_at(int64_t byte) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(scratch) + byte);
  }
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual int Stages() const { return 1; }
  virtual int64_t Tasks(int stage) const = 0;
  // Where the tasks of a stage lie in the output (the result of another stage), which says how they can be
  // split. Its tasks are Tasks(stage).
  virtual TaskGrid Grid(int stage) const { return TaskGrid::List(Tasks(stage)); }
  // Whether views may have a block_shift.
  virtual bool ShiftsBlocks() const { return false; }
  // Thread-safe for disjoint ranges of one stage, and for different args at any time.
  virtual void Run(const KernelArgs& args, int stage, TaskRange range) const = 0;
  virtual int64_t ScratchBytes(int threads) const {
    (void)threads;
    return 0;
  }
};

}  // namespace tilesmith
