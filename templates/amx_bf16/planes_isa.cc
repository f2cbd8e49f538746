#include "layouts/base/simd.h"
#include "templates/amx_bf16/planes.h"

namespace tilesmith::TILESMITH_ISA {
namespace {

using PlaneInts = VectorOf<kWidth>::Ints;

inline uint32_t RoundedBits(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7fffffff) > 0x7f800000) return bits >> 16 | 0x40;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

// The same of a vector; unsigned arithmetic, since sums may reach the sign.
inline PlaneInts RoundedVector(const float* from) {
  typedef uint32_t Words __attribute__((vector_size(sizeof(PlaneInts))));
  const Words bits = (Words)Load<kWidth>(from);
  const Words rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
  const Words is_nan = (Words)((PlaneInts)(bits & 0x7fffffff) > 0x7f800000);
  return (PlaneInts)((is_nan & quiet) | (~is_nan & rounded));
}

// Two words of a pixel by turns.
inline void StorePairs(PlaneInts a, PlaneInts b, int32_t* to) {
  PlaneInts pair[2];
#if defined(TILESMITH_ISA_avx512)
  pair[0] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  pair[1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#else
  for (int i = 0; i < kWidth; ++i) {
    pair[2 * i / kWidth][2 * i % kWidth] = a[i];
    pair[2 * i / kWidth][2 * i % kWidth + 1] = b[i];
  }
#endif
  __builtin_memcpy(to, pair, sizeof(pair));
}

}  // namespace

void InterleavePlanes(const amx_bf16::PlaneRows& r) {
  int64_t x = 0;
  if (r.channels == 3 && r.padded == 4 && r.step == 1) {  // images
    for (; x + kWidth <= r.columns; x += kWidth) {
      const PlaneInts first = RoundedVector(r.in + x) | RoundedVector(r.in + r.plane + x) << 16;
      StorePairs(first, RoundedVector(r.in + 2 * r.plane + x), reinterpret_cast<int32_t*>(r.out + x * 4));
    }
  }
  for (; x < r.columns; ++x) {
    for (int64_t c = 0; c < r.padded; ++c)
      r.out[x * r.padded + c] =
          static_cast<uint16_t>(c < r.channels ? RoundedBits(r.in[c * r.plane + x * r.step]) : 0);
  }
}

}  // namespace tilesmith::TILESMITH_ISA
