// What kernels are made of beside the numbers that their schedules say: packed weights and machine code,
// which nobody writes any more and several may hold. Equal ones are one where a pool is asked; and they may
// be those that an equal kernel was made of before, in another process (graph_tuner/compiled).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "layouts/tensor.h"

namespace tilesmith {

// A value: copies share the memory.
class SharedBuffer {
 public:
  SharedBuffer() = default;
  explicit SharedBuffer(AlignedBuffer contents);

  const std::byte* data() const { return bytes().data(); }
  const float* floats() const { return reinterpret_cast<const float*>(data()); }
  const int32_t* ints() const { return reinterpret_cast<const int32_t*>(data()); }
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

struct KernelPart {
  SharedBuffer memory = {};
  std::vector<uint32_t> functions = {};  // of machine code: where they begin, in bytes
  bool is_code = false;
};

// The parts of one kernel, in the order in which it asks for them while it is built: always the same, and of
// the same sizes, for the same schedule on the same target. One thread at a time.
class KernelParts {
 public:
  // They are made as they are asked for, data shared in the pool where there is one.
  explicit KernelParts(BufferPool* pool = nullptr) : pool_(pool) {}
  // They are those that an equal kernel was made of.
  explicit KernelParts(std::vector<KernelPart> known) : parts_(std::move(known)), known_(true) {}

  // The next part. Throws Error(kBadModel) where the known one is of another kind or size.
  SharedBuffer NextData(size_t bytes, const std::function<AlignedBuffer()>& make);
  KernelPart NextCode(const std::function<KernelPart()>& make);

  // All that were asked for.
  const std::vector<KernelPart>& parts() const { return parts_; }
  // Whether a kernel has asked for all parts that are known.
  bool complete() const { return !known_ || next_ == parts_.size(); }

 private:
  const KernelPart& NextKnown(bool is_code);

  BufferPool* pool_ = nullptr;
  std::vector<KernelPart> parts_;
  bool known_ = false;
  size_t next_ = 0;
};

// A kernel's next part: one of `parts`, or, where that is null, a new one. `make` gives `bytes` bytes, which
// may be none.
SharedBuffer DataPart(KernelParts* parts, size_t bytes, const std::function<AlignedBuffer()>& make);
// `floats` floats: `count` values, each `otherwise` where there are none, and zeros.
SharedBuffer FloatsPart(KernelParts* parts, const float* values, int64_t count, int64_t floats,
                        float otherwise = 0);
KernelPart CodePart(KernelParts* parts, const std::function<KernelPart()>& make);

}  // namespace tilesmith
