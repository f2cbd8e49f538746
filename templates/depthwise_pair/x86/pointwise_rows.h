// The 1x1 half of a fused pair: the direct template's row kernels for neighbouring pixels.
#pragma once

#include <span>

#include "layouts/base/target.h"
#include "templates/base/conv_template.h"
#include "templates/direct/packing.h"
#include "templates/direct/schedule.h"
#include "templates/direct/x86/row_kernels.h"

namespace tilesmith::depthwise_pair {

class PointwiseRows {
 public:
  // Preconditions: a 1x1 conv of one row in one pass; cpu.isa is AVX2 or AVX-512 and the machine has it.
  // `schedule` must outlive this.
  PointwiseRows(const direct::Schedule& schedule, const Target& cpu, const ConvWeights& weights);

  // The first pixel of the row, of the first channel.
  struct Row {
    const float* source = nullptr;
    float* output = nullptr;  // which need not exist in memory if that channel's chunk is not computed
    const float* residual = nullptr;
  };
  // Computes one chunk of output channels of the row that the schedule describes.
  void Run(const Row& row, int64_t chunk) const;

  std::span<const uint8_t> Code() const { return kernels_.Code(); }
  std::span<const std::byte> PackedWeights() const { return packed_.weights.bytes(); }

 private:
  const direct::Schedule& schedule_;
  direct::PackedWeights packed_;
  direct::RowKernels kernels_;
};

}  // namespace tilesmith::depthwise_pair
