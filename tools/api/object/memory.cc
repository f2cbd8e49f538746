// What of C's and C++'s libraries allocates, for libtilesmith_kernels alone, whose own symbols these are when
// it is put together: libstdc++'s operator new, too, calls malloc. What lives as long as the program, objects
// at namespace scope and static ones of functions, has a block of its own; it must not lie in memory that the
// caller takes back.
#include "tools/api/object/memory.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace tilesmith {
namespace {

// Alignment of malloc, and of what is in front of each block: its size.
constexpr size_t kAlignment = 16;
constexpr size_t kPageBytes = 4096;

constexpr size_t kStaticBytes = size_t{192} << 10;
alignas(64) std::byte static_bytes[kStaticBytes];
constinit Arena static_arena(static_bytes, kStaticBytes);

constinit thread_local Arena* scoped_arena = nullptr;
constinit thread_local int statics_being_made = 0;

Arena& CurrentArena() {
  return scoped_arena == nullptr || statics_being_made > 0 ? static_arena : *scoped_arena;
}

}  // namespace

void* Arena::Allocate(size_t bytes, size_t alignment) {
  size_t used = used_.load(std::memory_order_relaxed), at = 0;
  do {
    const auto address = reinterpret_cast<uintptr_t>(begin_) + used + kAlignment;
    at = used + kAlignment + (-address & (std::max(alignment, kAlignment) - 1));
    if (at > bytes_ || bytes > bytes_ - at) return nullptr;
  } while (!used_.compare_exchange_weak(used, at + bytes, std::memory_order_relaxed));
  std::memcpy(begin_ + at - sizeof(size_t), &bytes, sizeof(size_t));
  return begin_ + at;
}

size_t Arena::SizeOf(const void* block) {
  size_t bytes = 0;
  std::memcpy(&bytes, static_cast<const std::byte*>(block) - sizeof(size_t), sizeof(size_t));
  return bytes;
}

void Arena::Free(void* block) {
  const std::byte* const bytes = static_cast<std::byte*>(block);
  if (bytes < begin_ || bytes >= begin_ + bytes_ || kept_ > 0) return;
  size_t end = static_cast<size_t>(bytes - begin_) + SizeOf(block);
  used_.compare_exchange_strong(end, static_cast<size_t>(bytes - begin_) - kAlignment,
                                std::memory_order_relaxed);
}

ArenaScope::ArenaScope(Arena& arena) : before_(scoped_arena) { scoped_arena = &arena; }
ArenaScope::~ArenaScope() { scoped_arena = before_; }

}  // namespace tilesmith

using tilesmith::Arena;
using tilesmith::CurrentArena;

extern "C" {

void* malloc(size_t bytes) noexcept { return CurrentArena().Allocate(bytes, tilesmith::kAlignment); }

void free(void* block) noexcept {
  if (block != nullptr) CurrentArena().Free(block);
}

void* calloc(size_t count, size_t bytes) noexcept {
  if (bytes != 0 && count > SIZE_MAX / bytes) return nullptr;
  void* const block = malloc(count * bytes);
  if (block != nullptr) std::memset(block, 0, count * bytes);
  return block;
}

void* realloc(void* block, size_t bytes) noexcept {
  void* const larger = malloc(bytes);
  if (block == nullptr || larger == nullptr) return larger;
  std::memcpy(larger, block, std::min(bytes, Arena::SizeOf(block)));
  free(block);
  return larger;
}

void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return CurrentArena().Allocate(bytes, alignment);
}

int posix_memalign(void** block, size_t alignment, size_t bytes) noexcept {
  *block = aligned_alloc(alignment, bytes);
  return *block == nullptr ? ENOMEM : 0;
}

// Large tensors, which are to be zeros.
void* mmap(void*, size_t bytes, int, int, int file, off_t) noexcept {
  void* const block = file >= 0 ? nullptr : aligned_alloc(tilesmith::kPageBytes, bytes);
  return block == nullptr ? MAP_FAILED : std::memset(block, 0, bytes);
}

int munmap(void*, size_t) noexcept { return 0; }
int madvise(void*, size_t, int) noexcept { return 0; }

// Names of the C++ ABI. NOLINTBEGIN(bugprone-reserved-identifier)

// What is static stays: it holds nothing that a program has to give back, and libc's list takes a heap.
int __cxa_atexit(void (*)(void*), void*, void*) noexcept { return 0; }
int __cxa_thread_atexit(void (*)(void*), void*, void*) noexcept { return 0; }

// Guards of a function's static objects, as the C++ ABI has them: the first byte says that it is there, which
// callers look at themselves, the second that some thread makes it.
int __cxa_guard_acquire(int64_t* guard) {
  auto* const bytes = reinterpret_cast<char*>(guard);
  while (__atomic_exchange_n(bytes + 1, 1, __ATOMIC_ACQUIRE) != 0) sched_yield();
  if (__atomic_load_n(bytes, __ATOMIC_ACQUIRE) == 0) {
    ++tilesmith::statics_being_made;
    return 1;
  }
  __atomic_store_n(bytes + 1, 0, __ATOMIC_RELEASE);
  return 0;
}

void __cxa_guard_abort(int64_t* guard) noexcept {
  --tilesmith::statics_being_made;
  __atomic_store_n(reinterpret_cast<char*>(guard) + 1, 0, __ATOMIC_RELEASE);
}

void __cxa_guard_release(int64_t* guard) noexcept {
  __atomic_store_n(reinterpret_cast<char*>(guard), 1, __ATOMIC_RELEASE);
  __cxa_guard_abort(guard);
}

// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"
