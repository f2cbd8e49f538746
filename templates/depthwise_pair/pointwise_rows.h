// The 1x1 half of a fused pair: the direct template's row kernels for neighbouring pixels.
#pragma once

#include <memory>
#include <span>

#include "layouts/base/cpu.h"
#include "templates/conv_template.h"
#include "templates/direct/geometry.h"

namespace tilesmith::depthwise_pair {

class PointwiseRows {
 public:
  virtual ~PointwiseRows() = default;

  // The first pixel of the row, of the first channel.
  struct Row {
    const float* source = nullptr;
    float* output = nullptr;  // which need not exist in memory if that channel's chunk is not computed
    const float* residual = nullptr;
  };
  // Computes one chunk of output channels of the row that the geometry describes.
  virtual void Run(const Row& row, int64_t chunk) const = 0;

  virtual std::span<const uint8_t> Code() const = 0;
  virtual std::span<const float> PackedWeights() const = 0;
};

// Preconditions: a 1x1 conv of one row in one pass; cpu.isa is AVX2 or AVX-512 and the machine has it.
// `geometry` must outlive the result.
std::unique_ptr<PointwiseRows> BuildPointwiseRows(const direct::Geometry& geometry, const CpuInfo& cpu,
                                                  const ConvWeights& weights);

}  // namespace tilesmith::depthwise_pair
