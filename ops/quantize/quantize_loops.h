// Rows of reals and of the integers that stand for them, built for each instruction set (quantize_isa.cc).
#pragma once

#include <cstdint>

#include "layouts/base/isa_dispatch.h"

namespace tilesmith {

// Element i has scale[i * step] and zero_point[i * step].
struct ScaledRow {
  int64_t count = 0;
  const float* scale = nullptr;
  const int32_t* zero_point = nullptr;
  int64_t step = 0;  // 0 or 1
};

// Stored is uint8_t, int8_t, uint16_t or int16_t, and int32_t, whose zero points are 0, to be dequantised.
TILESMITH_DECLARE_ISA(template <typename Stored>
                      void QuantizeRow(const float* in, Stored* out, const ScaledRow& row))
TILESMITH_DECLARE_ISA(template <typename Stored>
                      void DequantizeRow(const Stored* in, float* out, const ScaledRow& row))

}  // namespace tilesmith
