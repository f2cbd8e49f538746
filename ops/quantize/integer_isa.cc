#include "ops/quantize/integer_loops.h"

namespace tilesmith::TILESMITH_ISA {
namespace {

// A loop that the compiler turns into vectors where bytes are adjacent.
template <typename Byte>
inline void AddScaledBytes(const ScaledBytes& row, int32_t* sums) {
  const Byte* const data = reinterpret_cast<const Byte*>(row.data);
  const int32_t zero = row.zero;
  const auto factor = static_cast<uint32_t>(row.factor);
  const int64_t count = row.count, step = row.step;
  uint32_t* const to = reinterpret_cast<uint32_t*>(sums);
  if (step == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] += factor * static_cast<uint32_t>(data[i] - zero);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] += factor * static_cast<uint32_t>(data[i * step] - zero);
  }
}

template <typename Byte>
inline ByteBounds Bound(const Byte* data, int64_t count, int32_t zero) {
  int32_t low = 0, high = 0, size = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int32_t number = data[i] - zero;
    low = number < low ? number : low;
    high = number > high ? number : high;
    size += number < 0 ? -number : number;
  }
  return {low, high, size};
}

}  // namespace

void AddScaledU8(const ScaledBytes& row, int32_t* sums) { AddScaledBytes<uint8_t>(row, sums); }
void AddScaledI8(const ScaledBytes& row, int32_t* sums) { AddScaledBytes<int8_t>(row, sums); }

ByteBounds BoundU8(const uint8_t* data, int64_t count, int32_t zero) { return Bound(data, count, zero); }
ByteBounds BoundI8(const int8_t* data, int64_t count, int32_t zero) { return Bound(data, count, zero); }

}  // namespace tilesmith::TILESMITH_ISA
