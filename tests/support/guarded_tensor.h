// Float buffers whose neighbourhood is unreadable, for kernels that must stay inside what they were given.
#pragma once

#include <cstddef>
#include <cstdint>

#include "layouts/base/kernel.h"

namespace tilesmith {

// Which end of the floats touches an unreadable page. The other end lies within one page of the other guard
// page; the bytes in between hold a canary.
enum class Guard {
  kAfter,   // one float past the end faults; the data is aligned to 4 bytes only, unless `size` makes it more
  kBefore,  // one float before the start faults; the data is aligned to a page
};

// `size` floats, all NaN. Reading or writing past the guarded end raises SIGSEGV; writing past the other end
// is found by SlackIntact(). Throws std::bad_alloc when the pages cannot be mapped.
class GuardedTensor {
 public:
  explicit GuardedTensor(int64_t size, Guard guard = Guard::kAfter);
  ~GuardedTensor();
  GuardedTensor(const GuardedTensor&) = delete;
  GuardedTensor& operator=(const GuardedTensor&) = delete;

  float* data() { return data_; }
  const float* data() const { return data_; }
  int64_t size() const { return size_; }
  float* begin() { return data_; }
  float* end() { return data_ + size_; }
  const float* begin() const { return data_; }
  const float* end() const { return data_ + size_; }
  float& operator[](int64_t i) { return data_[i]; }
  float operator[](int64_t i) const { return data_[i]; }

  // A batch whose images are `batch_stride` floats apart.
  InputView input_view(int64_t batch_stride) const {
    return {data_, batch_stride * static_cast<int64_t>(sizeof(float))};
  }
  OutputView output_view(int64_t batch_stride) {
    return {data_, batch_stride * static_cast<int64_t>(sizeof(float))};
  }

  void FillWithNan();
  // From now on any write raises SIGSEGV: for inputs.
  void MakeReadOnly();
  // Whether the canary between the data and the farther guard page is unharmed.
  bool SlackIntact() const;

 private:
  int64_t size_;
  size_t usable_bytes_;  // whole pages between the guard pages
  unsigned char* mapping_ = nullptr;
  unsigned char* usable_ = nullptr;
  float* data_ = nullptr;
};

}  // namespace tilesmith
