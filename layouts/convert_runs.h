// Runs of adjacent elements copied into another type: what transforms between types are made of, and what
// kernels that compute in f32 read and write other types by.
//
// Elements of bf16 are seen as uint16_t. Rounding is to nearest, ties to even; infinities stay, and a NaN
// stays a (quiet) one of its sign, as Bf16Bits (data_type.h) has it. All strides and counts are in elements.
// Input and output do not overlap; nothing needs alignment. Thread-safe. Original.
#pragma once

#include <cstdint>

#include "layouts/base/isa_dispatch.h"

namespace tilesmith {

// What elements of a type become: float and uint16_t are each other's.
template <typename From>
struct Converted {
  using Type = float;
};
template <>
struct Converted<float> {
  using Type = uint16_t;
};

// As RunMove (transform_moves.h), between types.
template <typename From>
struct ConvertMove {
  const From* in = nullptr;
  typename Converted<From>::Type* out = nullptr;
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
TILESMITH_DECLARE_ISA(template <typename From> void ConvertRuns(const ConvertMove<From>& move))

}  // namespace tilesmith
