// Matrix products M = V U in scratch, a 1x1 conv over an image of one row by the direct template's kernel:
// what templates of fewer multiplications spend their time in. V and M are NCHW[F]c, F floats of a vector.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "templates/direct/geometry.h"

#ifdef TILESMITH_X86
#include <span>

#include "templates/direct/row_kernels.h"
#endif

namespace tilesmith::direct {

// V has `ic` channels and M `oc`, which fills vectors.
ConvWorkload ProductWorkload(int64_t ic, int64_t oc, int64_t positions);

// The knobs of the products, beside those of the template: oc_vectors, width_tile, balance_tiles, broadcast,
// ic_unroll, prefetch. `most_positions`: of the longest row; `position`: what a position is called.
std::vector<Knob> ProductKnobs(const CpuInfo& cpu, int64_t most_positions, const std::string& position);

// Those knobs, and blocks of one vector; all channels in one pass.
DirectConfig ReadProductConfig(const Config& config, const CpuInfo& cpu);

// Why a config of these products cannot be built, in words; empty when it can.
std::string WhyProductInvalid(const ConvWorkload& product, const DirectConfig& config, const CpuInfo& cpu);

#ifdef TILESMITH_X86

class RowProduct {
 public:
  // Vectors of M's channels lie `m_positions` positions apart. config: of ReadProductConfig.
  RowProduct(const ConvWorkload& product, const DirectConfig& config, int64_t m_positions,
             const CpuInfo& cpu);

  int64_t positions() const { return geometry_.ow; }
  const std::vector<Chunk>& chunks() const { return geometry_.chunks; }

  struct Operands {
    const float* v = nullptr;  // position 0
    int64_t v_vector = 0;      // floats from one vector of V's channels to the next
    const float* u = nullptr;  // of the chunk, in PackWeights' order
    float* m = nullptr;        // of the chunk's first vector, position 0
  };
  void Run(size_t chunk, const Operands& operands) const;

  std::span<const uint8_t> code() const { return kernels_.Code(); }

 private:
  Geometry geometry_;
  RowKernels kernels_;
};

#endif  // TILESMITH_X86

}  // namespace tilesmith::direct
