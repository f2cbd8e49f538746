#include "layouts/measure/cache_eviction.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#ifdef TILESMITH_X86
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace tilesmith {
namespace {

#if defined(TILESMITH_X86) || defined(TILESMITH_ARM)
constexpr size_t kLineBytes = 64;
#endif

#ifdef TILESMITH_X86
bool HasClflushopt() {
  unsigned eax, ebx = 0, ecx, edx;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ebx & (1u << 23)) != 0;
}

// Unordered among each other, so an order of magnitude faster than clflush.
__attribute__((target("clflushopt"))) void FlushUnordered(std::span<std::byte> memory) {
  for (size_t at = 0; at < memory.size(); at += kLineBytes) _mm_clflushopt(&memory[at]);
  _mm_clflushopt(&memory.back());
}

void FlushOrdered(std::span<std::byte> memory) {
  for (size_t at = 0; at < memory.size(); at += kLineBytes) _mm_clflush(&memory[at]);
  _mm_clflush(&memory.back());
}
#endif

}  // namespace

void EvictFromCaches(std::span<const std::byte> memory) {
  if (memory.empty()) return;
#ifdef TILESMITH_X86
  static const bool has_clflushopt = HasClflushopt();
  // The instructions' pointers are not const, though they change nothing.
  const std::span<std::byte> lines(const_cast<std::byte*>(memory.data()), memory.size());
  has_clflushopt ? FlushUnordered(lines) : FlushOrdered(lines);
  _mm_mfence();
#elif defined(TILESMITH_ARM)
  const auto flush = [](const std::byte* at) { asm volatile("dc civac, %0" : : "r"(at) : "memory"); };
  for (size_t at = 0; at < memory.size(); at += kLineBytes) flush(&memory[at]);
  flush(&memory.back());
  asm volatile("dsb sy" : : : "memory");
#else
  // No flush instruction is assumed: displace the caches by writing more than they hold.
  static std::vector<char> sweep(64 << 20);
  for (size_t i = 0; i < sweep.size(); i += 64) ++sweep[i];
#endif
}

}  // namespace tilesmith
