// What every CUDA device allows, and what configs are held to before anything is compiled.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "templates/base/conv_template.h"

namespace tilesmith::cuda {

constexpr int64_t kMaxThreads = 1024;     // of a block
constexpr int64_t kMaxRegisters = 240;    // of a thread, by estimate: of 255, a few for what compilers keep
constexpr int64_t kRegisters = 64 << 10;  // of a multiprocessor
constexpr int64_t kMaxGrid = 65535;       // y and z; x has 2^31 - 1
constexpr int64_t kMaxPositions = (int64_t{1} << 31) - 1;
constexpr int64_t kMaxScratch = int64_t{1} << 30;

// "" where a block of so many threads, with so many registers each by estimate, and so much shared memory can
// run, or why not.
inline std::string WhyNoBlock(const Target& target, int64_t threads, int64_t registers,
                              int64_t shared_bytes) {
  if (threads > kMaxThreads) return fmt::format("{} threads (allowed: {})", threads, kMaxThreads);
  if (threads % 32 != 0) return fmt::format("{} threads, not whole warps", threads);
  if (registers > kMaxRegisters)
    return fmt::format("about {} registers (allowed: {})", registers, kMaxRegisters);
  if (registers * threads > kRegisters)
    return fmt::format("about {} registers in {} threads (there are {})", registers, threads, kRegisters);
  if (shared_bytes > target.l1d_bytes)
    return fmt::format("{} bytes of shared memory (there are {})", shared_bytes, target.l1d_bytes);
  return "";
}

// Blocks of so many threads, with so many registers each by estimate, that a multiprocessor surely holds at a
// time. For launch bounds: a compiler that is told no number spills a few registers to make room for one
// block more (CUDA C++ Programming Guide, "Launch Bounds"). Half as many registers again are for what it
// reads ahead.
inline int64_t ResidentBlocks(int64_t threads, int64_t registers) {
  return std::clamp<int64_t>(kRegisters / (threads * (registers + registers / 2)), 1, kMaxThreads / threads);
}

// Layouts worth trying.
inline std::vector<int64_t> BlockKnob(int64_t channels) {
  std::vector<int64_t> values = {1, 4, 16};
  std::erase_if(values, [&](int64_t block) { return block > 4 && block >= 4 * channels; });
  values.push_back(0);
  return values;
}

// Whether so many channels of a pixel lie together, and so do those of every group.
inline bool InRuns(int64_t count, const Layout& layout, int64_t channels, int64_t groups) {
  return layout.BlockFor(channels) % count == 0 && channels / groups % count == 0;
}

}  // namespace tilesmith::cuda
