// The memory of libtilesmith_kernels, which has no heap: whatever the library allocates while networks of
// objects are prepared and run is cut from memory of the caller's (memory.cc).
#pragma once

#include <atomic>
#include <cstddef>

namespace tilesmith {

// Memory from which blocks are cut one behind the other. Until Keep() the last block goes back when it is
// freed. Behind that all blocks stay until FreeRest(): threads free in any order, and a run is to take as
// much each time. Thread-safe but for these two.
class Arena {
 public:
  constexpr Arena(std::byte* begin, size_t bytes) : begin_(begin), bytes_(bytes) {}

  // Null where there is not enough. Precondition: a power of two.
  void* Allocate(size_t bytes, size_t alignment);
  // Of a block that was allocated here or elsewhere.
  void Free(void* block);
  static size_t SizeOf(const void* block);

  size_t used() const { return used_.load(std::memory_order_relaxed); }
  void Keep() { kept_ = used(); }
  void FreeRest() { used_.store(kept_, std::memory_order_relaxed); }

 private:
  std::byte* const begin_;
  const size_t bytes_;
  std::atomic<size_t> used_{0};
  size_t kept_ = 0;  // 0: not yet
};

// While it lives, the calling thread allocates there.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena);
  ~ArenaScope();
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  Arena* const before_;
};

}  // namespace tilesmith
