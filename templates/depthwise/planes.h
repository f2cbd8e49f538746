// The planes of a built depthwise conv: packed weights and code, run on any rows and channels of an image.
#pragma once

#include <memory>
#include <vector>

#include "layouts/base/cpu.h"
#include "templates/conv_template.h"
#include "templates/depthwise/depthwise_geometry.h"

namespace tilesmith::depthwise {

// Weights as the kernel reads them. For each vector of channels: the kernel's (kernel row, kernel column,
// lane), then with pairs those of their products (product, kernel column, lane). Channels past the last are
// zero.
struct PackedPlanes {
  AlignedBuffer weights;
  AlignedBuffer bias;  // whole vectors
};
PackedPlanes PackPlanes(const RowGeometry& geometry, const ConvWeights& weights);

class Planes {
 public:
  virtual ~Planes() = default;

  // One image: pixel 0 of row 0 of its first channel, which need not exist in memory if row 0 is not touched.
  struct Image {
    const float* source = nullptr;
    float* output = nullptr;
    const float* residual = nullptr;
  };
  // Output rows of row block `row_block`, vectors [first, first + count) of channels; the padding channels
  // behind the last vector too. Thread-safe for disjoint outputs.
  virtual void Run(const Image& image, int64_t first, int64_t count, int64_t row_block) const = 0;

  virtual std::span<const uint8_t> Code() const = 0;
  virtual std::span<const float> PackedWeights() const = 0;
};

// Precondition: cpu.isa is AVX2 or AVX-512 and the machine has it. `geometry` must outlive the result.
std::unique_ptr<Planes> BuildPlanes(const Geometry& geometry, const CpuInfo& cpu, const ConvWeights& weights);

}  // namespace tilesmith::depthwise
