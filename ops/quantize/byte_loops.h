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

// Places in memory, rows * columns of them.
struct TapGrid {
  int64_t rows = 0, columns = 0, row_step = 0, column_step = 0;  // steps in elements
};
// out[i] = max over taps of in[tap + i], the type's lowest where there are none.
TILESMITH_DECLARE_ISA(template <typename Byte>
                      void LargestOfTaps(const Byte* in, const TapGrid& taps, Byte* out, int64_t count))

// out[i] = clamp(round(float(start + in[i] at all taps) * scale / divisor / out_scale) + zero, low, high);
// each operation is rounded to float.
struct MeanTerms {
  float scale = 1, divisor = 1, out_scale = 1;
  int32_t start = 0, zero = 0, low = 0, high = 0;
};
TILESMITH_DECLARE_ISA(template <typename Byte> void MeanOfTaps(const Byte* in, const TapGrid& taps, Byte* out,
                                                               int64_t count, const MeanTerms& terms))

// out = clamp(round((in - in_zero) * factor + term) + zero, low, high); each operation is rounded to float.
// Floats have an in_zero of 0, and a NaN becomes `low`.
struct ByteScaleShift {
  const float* factor = nullptr;  // of each channel
  const float* term = nullptr;
  int32_t in_zero = 0, zero = 0, low = 0, high = 0;
};
// Pixels are `lanes` elements apart, of which the first `channels` are computed. Precondition: lanes of 1
// have one channel.
TILESMITH_DECLARE_ISA(template <typename Byte> void ScaleShiftBytes(const Byte* in, Byte* out, int64_t pixels,
                                                                    int64_t channels, int64_t lanes,
                                                                    const ByteScaleShift& terms))
TILESMITH_DECLARE_ISA(template <typename Byte>
                      void ScaleShiftFloats(const float* in, Byte* out, int64_t pixels, int64_t channels,
                                            int64_t lanes, const ByteScaleShift& terms))

}  // namespace tilesmith
