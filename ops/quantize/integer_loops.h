// Rows of bytes multiplied by an integer and added up, and what such rows hold, built for each instruction
// set (integer_isa.cc).
#pragma once

#include <cstddef>
#include <cstdint>

#include "layouts/base/isa_dispatch.h"

namespace tilesmith {

struct ScaledBytes {
  const std::byte* data = nullptr;
  int64_t step = 1;  // bytes from one to the next
  int32_t zero = 0, factor = 1;
  int64_t count = 0;
};

// sums[i] += factor * (data[i * step] - zero), modulo 2^32, of bytes without and with a sign.
TILESMITH_DECLARE_ISA(void AddScaledU8(const ScaledBytes& row, int32_t* sums))
TILESMITH_DECLARE_ISA(void AddScaledI8(const ScaledBytes& row, int32_t* sums))

// The ends of numbers less a zero point, 0 being one of them, and the sum of their sizes.
struct ByteBounds {
  int32_t low = 0, high = 0, size = 0;
};
// They bound bytes without and with a sign. Preconditions: -128 <= zero <= 255; count <= 2^22, whose sum
// fits.
TILESMITH_DECLARE_ISA(ByteBounds BoundU8(const uint8_t* data, int64_t count, int32_t zero))
TILESMITH_DECLARE_ISA(ByteBounds BoundI8(const int8_t* data, int64_t count, int32_t zero))

}  // namespace tilesmith
