// What the loops of a config do, as numbers that a cost model can learn from and that mean the same for every
// template: arithmetic, register tile, bytes touched, balance. Estimates from shapes alone; nothing is built.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "layouts/base/target.h"
#include "ops/conv/workload.h"

namespace tilesmith {

struct LoopFeatures {
  double flops = 0;         // two per lane of every FMA, padding channels and tails included
  double fma_per_load = 0;  // vector FMAs per vector read from memory in the innermost loop
  double accumulators = 0;  // registers that hold outputs
  double code_bytes = 0;    // of the largest kernel
  double weight_bytes = 0;  // packed, all of them
  double tasks = 0;         // of the stage that does most of the work
  // One of these tasks touches so much.
  double task_input_bytes = 0, task_weight_bytes = 0, task_output_bytes = 0;
  double output_passes = 1;  // times every output is written
  double scratch_bytes = 0;  // of one thread
};

// Bytes of the input rows, `channels` of them wide, that `rows` output rows read.
double InputBytes(const ConvWorkload& workload, int64_t rows, int64_t channels);

// Raised when the features change their meaning: models trained on others do not fit.
constexpr int kFeatureVersion = 1;

// Names of the entries of FeatureVector, in its order.
std::span<const std::string_view> FeatureNames();

// The features in a form for regression: sizes as logarithms of base 2, and relative to what they compete for
// (caches, registers, threads). All finite. Precondition: threads > 0.
std::vector<float> FeatureVector(const LoopFeatures& features, const ConvWorkload& workload,
                                 const Target& cpu, int threads);

// What a core does in a cycle, as estimates of cycles take it (ConvTemplate::Cycles): measured on Zen 3, and
// near enough on other cores to choose between schedules.
constexpr double kFmasPerCycle = 2;         // vectors
constexpr double kFmaLatency = 4;           // until a sum can go on
constexpr double kBf16DotLatency = 6;       // the same of products of pairs of bf16
constexpr double kLoadsPerCycle = 1.3;      // vectors or elements from the first-level cache, beside the FMAs
constexpr double kL2VectorsPerCycle = 0.7;  // vectors from the second-level cache
constexpr double kL3BytesPerCycle = 16;
constexpr double kMemoryBytesPerCycle = 8;  // of all cores together

}  // namespace tilesmith
