// The matrix products: M[xi] = V[xi] U[xi] for a block of tiles and one chunk of output channels, by the
// direct template's kernel for a 1x1 conv over an image of one row.
#pragma once

#ifdef TILESMITH_X86

#include <span>
#include <vector>

#include "templates/direct/row_kernels.h"
#include "templates/winograd/geometry.h"

namespace tilesmith::winograd {

class TileProduct {
 public:
  // For exactly `tiles` tiles, of scratch laid out for geometry.block_tiles.
  TileProduct(const Geometry& geometry, int64_t tiles, const CpuInfo& cpu);

  int64_t tiles() const { return geometry_.ow; }
  const std::vector<direct::Chunk>& chunks() const { return geometry_.chunks; }

  // v, m: V[xi] and M[xi] of the block's first tile. u: U[xi] of the chunk, direct::PackWeights' order.
  void Run(size_t chunk, const float* v, const float* u, float* m) const;

  std::span<const uint8_t> code() const { return kernels_.Code(); }

 private:
  direct::Geometry geometry_;
  direct::RowKernels kernels_;
};

}  // namespace tilesmith::winograd

#endif  // TILESMITH_X86
