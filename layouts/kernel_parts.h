// What kernels are made of beside the numbers that their schedules say: packed weights and machine code,
// which nobody writes any more and several may hold. Equal ones are one where a pool is asked; and they may
// be those that an equal kernel was made of before, in another process (graph_tuner/compiled).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
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

struct KernelPart {
  SharedBuffer memory = {};
  std::vector<uint32_t> functions = {};  // of machine code: where they begin, in bytes
  bool is_code = false;
};

// What a part depends on, as bytes: equal ones make equal parts for the same target.
class PartKey {
 public:
  PartKey() = default;  // nobody knows
  explicit PartKey(std::string_view kind) : bytes_(kind) {}

  template <typename... Numbers>
  PartKey& Add(const Numbers&... numbers) {
    (AddNumber(static_cast<int64_t>(numbers)), ...);
    return *this;
  }
  PartKey& Add(const std::string& text) {
    Add(text.size());
    bytes_ += text;
    return *this;
  }

  bool empty() const { return bytes_.empty(); }
  const std::string& bytes() const { return bytes_; }

 private:
  void AddNumber(int64_t number) { bytes_.append(reinterpret_cast<const char*>(&number), sizeof(number)); }

  std::string bytes_;
};
// Asked where parts are shared only.
using PartKeyOf = std::function<PartKey()>;

// The parts of kernels for one target that share what is equal. Thread-safe. Data that nobody else holds is
// freed; of code the pool itself keeps what was used last, so that a network that is built for one size after
// another finds it.
class BufferPool {
 public:
  // The buffer with these contents that was added before and still lives, or else a new one.
  SharedBuffer Add(AlignedBuffer contents);

  // The part with this key, null where there is none; `sources` as they were when it was kept.
  std::optional<KernelPart> Find(const PartKey& key, std::span<const std::shared_ptr<const Tensor>> sources);
  void Keep(const PartKey& key, std::span<const std::shared_ptr<const Tensor>> sources,
            const KernelPart& part);

 private:
  struct Known {
    std::weak_ptr<const AlignedBuffer> contents;
    std::vector<uint32_t> functions;
    bool is_code = false;
    std::vector<std::weak_ptr<const Tensor>> sources;

    bool IsFor(std::span<const std::shared_ptr<const Tensor>> now) const;
  };
  void UseCode(const SharedBuffer& code);
  void ForgetFreed();

  std::mutex mutex_;
  std::multimap<size_t, std::weak_ptr<const AlignedBuffer>> by_size_;
  std::unordered_map<std::string, Known> by_key_;
  size_t sweep_at_ = 256;         // entries
  std::list<SharedBuffer> code_;  // the one used last in front
  size_t code_bytes_ = 0;
};

// What equal kernels share: all code where `kernel` is equal, and data where its key is and they are made
// from the same tensors.
struct PartSharing {
  BufferPool* pool = nullptr;
  PartKey kernel = {};
  std::vector<std::shared_ptr<const Tensor>> weights = {};
};

// The parts of one kernel, in the order in which it asks for them while it is built: always the same, and of
// the same sizes, for the same schedule on the same target. One thread at a time.
class KernelParts {
 public:
  // They are made as they are asked for, or shared in a pool where there is one.
  explicit KernelParts(PartSharing sharing = {}) : sharing_(std::move(sharing)) {}
  // They are those that an equal kernel was made of.
  explicit KernelParts(std::vector<KernelPart> known) : parts_(std::move(known)), known_(true) {}

  // The next part. Throws Error(kBadModel) where the known one is of another kind or size.
  // Of data, `key` has what it depends on beside the kernel's weights; of code, what it depends on, the
  // kernel's own key where that is empty.
  SharedBuffer NextData(size_t bytes, const std::function<AlignedBuffer()>& make, const PartKeyOf& key = {});
  KernelPart NextCode(const std::function<KernelPart()>& make, const PartKeyOf& key = {});

  // All that were asked for.
  const std::vector<KernelPart>& parts() const { return parts_; }
  // Whether a kernel has asked for all parts that are known.
  bool complete() const { return !known_ || next_ == parts_.size(); }

 private:
  const KernelPart& NextKnown(bool is_code);

  PartSharing sharing_;
  std::vector<KernelPart> parts_;
  bool known_ = false;
  size_t next_ = 0;
};

// A kernel's next part: one of `parts`, or, where that is null, a new one. `make` gives `bytes` bytes, which
// may be none.
SharedBuffer DataPart(KernelParts* parts, size_t bytes, const std::function<AlignedBuffer()>& make,
                      const PartKeyOf& key = {});
// `floats` floats: `count` values, each `otherwise` where there are none, and zeros.
SharedBuffer FloatsPart(KernelParts* parts, const float* values, int64_t count, int64_t floats,
                        float otherwise = 0);
KernelPart CodePart(KernelParts* parts, const std::function<KernelPart()>& make, const PartKeyOf& key = {});

}  // namespace tilesmith
