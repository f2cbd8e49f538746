// The inner loops of layout transforms: what is done to a slab of pixels and a few channels.
//
// Elements are of 1, 2, 4 or 8 bytes, and only moved: uint8_t, uint16_t, float and uint64_t stand for all
// types of their size. All strides and counts are in elements. Input and output do not overlap; nothing needs
// alignment; nothing outside the elements named by the formulas is read or written. Thread-safe. Original.
#pragma once

#include <cstdint>

#include "layouts/base/isa_dispatch.h"

namespace tilesmith {

// Between planes (one channel's pixels adjacent) and blocks (one pixel's channels adjacent).
template <typename Element>
struct PlaneMove {
  const Element* in = nullptr;
  Element* out = nullptr;
  int64_t plane_stride = 0;  // on the side of the planes, from one channel to the next
  int64_t pixel_stride = 0;  // on the side of the blocks, from one pixel to the next
  int64_t pixels = 0;
  int64_t channels = 0;
  int64_t padded = 0;  // >= channels; Deinterleave does not look at it
};

// Between blocks and blocks: for every pixel, `runs` runs of `length` adjacent channels.
template <typename Element>
struct RunMove {
  const Element* in = nullptr;
  Element* out = nullptr;
  int64_t in_pixel_stride = 0, out_pixel_stride = 0;
  int64_t in_run_stride = 0, out_run_stride = 0;
  int64_t pixels = 0;
  int64_t runs = 0;
  int64_t length = 0;
  int64_t padded = 0;  // >= length
};

// out[p * pixel_stride + c] = c < channels ? in[c * plane_stride + p] : 0, for p < pixels, c < padded.
TILESMITH_DECLARE_ISA(template <typename Element> void Interleave(const PlaneMove<Element>& move))

// out[c * plane_stride + p] = in[p * pixel_stride + c], for p < pixels, c < channels.
TILESMITH_DECLARE_ISA(template <typename Element> void Deinterleave(const PlaneMove<Element>& move))

// out[p * out_pixel_stride + r * out_run_stride + i] =
//     i < length ? in[p * in_pixel_stride + r * in_run_stride + i] : 0,
// for p < pixels, r < runs, i < padded.
TILESMITH_DECLARE_ISA(template <typename Element> void CopyRuns(const RunMove<Element>& move))

}  // namespace tilesmith
