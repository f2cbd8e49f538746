// Memory that nobody writes any more and several may hold, and a pool in which equal ones are one: what
// kernels pack of a network's weights is mostly the same for every size of its inputs.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "layouts/tensor.h"

namespace tilesmith {

// A value: copies share the memory.
class SharedBuffer {
 public:
  SharedBuffer() = default;
  explicit SharedBuffer(AlignedBuffer contents);

  const std::byte* data() const { return bytes().data(); }
  const float* floats() const { return reinterpret_cast<const float*>(data()); }
  std::span<const std::byte> bytes() const;

 private:
  friend class BufferPool;
  std::shared_ptr<const AlignedBuffer> contents_;
};

// Thread-safe. What nobody else holds is freed; the pool itself keeps nothing alive.
class BufferPool {
 public:
  // The buffer with these contents that was added before and still lives, or else a new one.
  SharedBuffer Add(AlignedBuffer contents);

 private:
  std::mutex mutex_;
  std::multimap<size_t, std::weak_ptr<const AlignedBuffer>> by_size_;
};

// Added to the pool, where there is one.
SharedBuffer Pooled(AlignedBuffer contents, BufferPool* pool);

}  // namespace tilesmith
