// The transformed weights U = G g G^T, in the order the matrix products read them:
//   for xi, chunk of output channels, input channel: the chunk's output channels, padded to whole vectors
// which is what direct::PackWeights makes of a 1x1 conv, one xi after the other.
#pragma once

#include <cstdint>

#include "layouts/base/isa_dispatch.h"

namespace tilesmith::winograd {

// Input channels whose products are summed apart. That keeps rounding errors no larger than those of oneDNN's
// products, for some 1% of the time with 128 channels, 3% with 256.
constexpr int64_t kChannelsPerPass = 64;

struct ChunkWeights {
  const float* weights = nullptr;  // OIHW, first output channel of the chunk
  int64_t input_channels = 0;
  int64_t outputs = 0;                // real output channels of the chunk
  int64_t lanes = 0;                  // with padding; a multiple of 8
  const double* transform = nullptr;  // G, window x 3, row by row
  int window = 0;                     // T
  float* packed = nullptr;            // U of xi 0 and this chunk
  int64_t element_stride = 0;         // floats from one xi to the next
};

}  // namespace tilesmith::winograd

namespace tilesmith {

// Computed in double, rounded once. Padding lanes are written as zeros.
TILESMITH_DECLARE_ISA(void TransformWinogradWeights(const winograd::ChunkWeights& chunk))

}  // namespace tilesmith
