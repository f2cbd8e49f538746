// What a core does in a cycle, as estimates of cycles take it (ConvTemplate::Cycles): measured on Zen 3, and
// near enough on other cores to choose between schedules.
#pragma once

namespace tilesmith {

constexpr double kFmasPerCycle = 2;         // vectors
constexpr double kFmaLatency = 4;           // until a sum can go on
constexpr double kBf16DotLatency = 6;       // the same of products of pairs of bf16
constexpr double kLoadsPerCycle = 1.3;      // vectors or elements from the first-level cache, beside the FMAs
constexpr double kL2VectorsPerCycle = 0.7;  // vectors from the second-level cache
constexpr double kL3BytesPerCycle = 16;
constexpr double kMemoryBytesPerCycle = 8;  // of all cores together

}  // namespace tilesmith
