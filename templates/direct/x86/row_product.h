// The products of templates/direct/row_product.h, built.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "templates/direct/row_product.h"
#include "templates/direct/x86/row_kernels.h"

namespace tilesmith::direct {

class RowProduct {
 public:
  // Vectors of M's channels lie `m_positions` positions apart. config: of ReadProductConfig.
  RowProduct(const ConvWorkload& product, const DirectConfig& config, int64_t m_positions, const Target& cpu);

  int64_t positions() const { return schedule_.ow; }
  const std::vector<Chunk>& chunks() const { return schedule_.chunks; }

  struct Operands {
    const std::byte* v = nullptr;  // position 0
    int64_t v_vector_bytes = 0;    // from one vector of V's channels to the next
    const std::byte* u = nullptr;  // of the chunk, in PackWeights' order
    float* m = nullptr;            // of the chunk's first vector, position 0
  };
  void Run(size_t chunk, const Operands& operands) const;

  std::span<const uint8_t> code() const { return kernels_.Code(); }

 private:
  Schedule schedule_;
  RowKernels kernels_;
};

}  // namespace tilesmith::direct
