// A built depthwise conv: packed weights, one code buffer, and the loops around it.
#pragma once

#include <memory>

#include "layouts/base/cpu.h"
#include "templates/conv_template.h"
#include "templates/depthwise/depthwise_geometry.h"

namespace tilesmith::depthwise {

// Weights as the kernel reads them: vector of channels, kernel row, kernel column, lane. Channels past the
// last are zero.
struct PackedPlanes {
  AlignedBuffer weights;
  AlignedBuffer bias;  // whole vectors
};
PackedPlanes PackPlanes(const RowGeometry& geometry, const ConvWeights& weights);

// Precondition: cpu.isa is AVX2 or AVX-512 and the machine has it.
std::unique_ptr<ConvKernel> BuildDepthwiseKernel(Geometry geometry, const CpuInfo& cpu,
                                                 const ConvWeights& weights);

}  // namespace tilesmith::depthwise
