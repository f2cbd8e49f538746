// Runs of adjacent elements copied into another type: what transforms between types are made of, and what
// kernels that compute in f32 read and write other types by.
//
// Elements of bf16 are seen as uint16_t, those of f16 as HalfBits. Rounding is to nearest, ties to even, as
// Bf16Bits and F16Bits (data_type.h) have it: infinities stay, a NaN stays a (quiet) one of its sign, and f16
// that is subnormal is exact whether or not the CPU takes subnormal floats for zero. All strides and counts
// are in elements. Input and output do not overlap; nothing needs alignment. Thread-safe. Original.
#pragma once

#include <cstdint>

#include "layouts/base/isa_dispatch.h"

namespace tilesmith {

// An F16 (data_type.h) without the code that comes with it, which must not be built for an instruction set.
struct HalfBits {
  uint16_t bits;
};

// What elements of a type become where nothing else is asked for: float and uint16_t are each other's.
template <typename From>
struct Converted {
  using Type = float;
};
template <>
struct Converted<float> {
  using Type = uint16_t;
};

// As RunMove (transform_moves.h), between types, one of which is float.
template <typename From, typename To = typename Converted<From>::Type>
struct ConvertMove {
  const From* in = nullptr;
  To* out = nullptr;
  int64_t in_pixel_stride = 0, out_pixel_stride = 0;
  int64_t in_run_stride = 0, out_run_stride = 0;
  int64_t pixels = 1;
  int64_t runs = 1;
  int64_t length = 0;
  int64_t padded = 0;  // >= length
};

// out[p * out_pixel_stride + r * out_run_stride + i] =
//     i < length ? in[p * in_pixel_stride + r * in_run_stride + i] converted : 0,
// for p < pixels, r < runs, i < padded.
TILESMITH_DECLARE_ISA(template <typename From, typename To = typename Converted<From>::Type>
                      void ConvertRuns(const ConvertMove<From, To>& move))

}  // namespace tilesmith
