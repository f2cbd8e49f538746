#include "tests/fuzz/coverage.h"

#include <array>
#include <bit>
#include <cstdint>

// Where the program begins, so that the same code has the same place in every process.
extern "C" const char __executable_start;

namespace tilesmith::fuzz {
namespace {

constexpr size_t kEdges = size_t{1} << 16;

std::array<uint8_t, kEdges> taken;     // of this execution, up to 255
std::array<uint32_t, kEdges> touched;  // the edges with taken > 0
size_t touched_count = 0;
std::array<uint8_t, kEdges> seen;  // of all executions, a bit for each class of counts

thread_local bool recording = false;
thread_local uintptr_t previous = 0;

}  // namespace

void BeginCoverage() {
  for (size_t i = 0; i < touched_count; ++i) taken[touched[i]] = 0;
  touched_count = 0;
  previous = 0;
  recording = true;
}

size_t NewFeatures() {
  recording = false;
  size_t found = 0;
  for (size_t i = 0; i < touched_count; ++i) {
    const uint32_t edge = touched[i];
    const unsigned count = taken[edge];
    const unsigned kind =
        count <= 3 ? count - 1 : static_cast<unsigned>(std::bit_width(count));  // 0..2, 3..8
    const auto bit = static_cast<uint8_t>(1u << (kind < 8 ? kind : 7));
    if ((seen[edge] & bit) == 0) ++found;
    seen[edge] |= bit;
  }
  return found;
}

}  // namespace tilesmith::fuzz

// GCC and Clang call this at the beginning of every basic block.
extern "C" void __sanitizer_cov_trace_pc() {
  using namespace tilesmith::fuzz;
  if (!recording) return;
  const auto pc = reinterpret_cast<uintptr_t>(__builtin_return_address(0)) -
                  reinterpret_cast<uintptr_t>(&__executable_start);
  const uintptr_t place = (pc * 0x9E3779B97F4A7C15u) >> 40;
  const auto edge = static_cast<uint32_t>((place ^ previous) % kEdges);
  previous = place >> 1;
  if (taken[edge] == 0) touched[touched_count++] = edge;
  if (taken[edge] < UINT8_MAX) ++taken[edge];
}
