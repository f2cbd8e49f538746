// Rows of quantised bytes, built for each instruction set (byte_isa.cc). Byte is uint8_t or int8_t.
#pragma once

#include <cstdint>

#include "layouts/base/isa_dispatch.h"

namespace tilesmith {

// out = clamp(round(((a - a_zero) * a_scale op (b - b_zero) * b_scale) / scale) + zero, low, high), op being
// + or *; each operation is rounded to float.
struct ByteBinary {
  float a_scale = 1, b_scale = 1, scale = 1;
  int32_t a_zero = 0, b_zero = 0, zero = 0, low = 0, high = 0;
};
TILESMITH_DECLARE_ISA(template <typename Byte> void AddBytes(const Byte* a, const Byte* b, Byte* out,
                                                             int64_t count, const ByteBinary& terms))
TILESMITH_DECLARE_ISA(template <typename Byte> void MultiplyBytes(const Byte* a, const Byte* b, Byte* out,
                                                                  int64_t count, const ByteBinary& terms))

// out[i] = max(out[i], in[i])
TILESMITH_DECLARE_ISA(template <typename Byte> void MaximizeBytes(const Byte* in, Byte* out, int64_t count))

// sums[i] += in[i]
TILESMITH_DECLARE_ISA(template <typename Byte> void AddToSums(const Byte* in, int32_t* sums, int64_t count))
// out = clamp(round(float(sum) * scale / divisor / out_scale) + zero, low, high); each operation is rounded
// to float.
struct MeanTerms {
  float scale = 1, divisor = 1, out_scale = 1;
  int32_t zero = 0, low = 0, high = 0;
};
TILESMITH_DECLARE_ISA(template <typename Byte>
                      void RoundMeans(const int32_t* sums, Byte* out, int64_t count, const MeanTerms& terms))

}  // namespace tilesmith
