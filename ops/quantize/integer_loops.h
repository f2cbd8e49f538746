// Rows of bytes multiplied by an integer and added up, built for each instruction set (integer_isa.cc).
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

}  // namespace tilesmith
