// ConvertRuns: f32 to bf16 and back, by arithmetic on the bits, which compilers turn into vectors.
#include "layouts/base/simd.h"
#include "layouts/convert_runs.h"

namespace tilesmith::TILESMITH_ISA {
namespace {

inline uint32_t BitsOf(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline void ConvertElement(float from, uint16_t& to) {
  const uint32_t bits = BitsOf(from);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const uint32_t quiet = bits >> 16 | 0x40;
  to = static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

inline void ConvertElement(uint16_t from, float& to) {
  const uint32_t bits = static_cast<uint32_t>(from) << 16;
  __builtin_memcpy(&to, &bits, sizeof(bits));
}

template <typename From, typename To>
inline void ConvertRun(const From* __restrict in, To* __restrict out, int64_t length) {
  for (int64_t i = 0; i < length; ++i) ConvertElement(in[i], out[i]);
}

// A length known to the compiler is a vector or two, without a loop.
template <int kLength, typename From>
void ConvertRunsOf(const ConvertMove<From>& m) {
  for (int64_t p = 0; p < m.pixels; ++p)
    for (int64_t r = 0; r < m.runs; ++r)
      ConvertRun(m.in + p * m.in_pixel_stride + r * m.in_run_stride,
                 m.out + p * m.out_pixel_stride + r * m.out_run_stride, kLength);
}

template <typename From>
void ConvertAnyRuns(const ConvertMove<From>& m) {
  for (int64_t p = 0; p < m.pixels; ++p) {
    for (int64_t r = 0; r < m.runs; ++r) {
      auto* out = m.out + p * m.out_pixel_stride + r * m.out_run_stride;
      ConvertRun(m.in + p * m.in_pixel_stride + r * m.in_run_stride, out, m.length);
      for (int64_t i = m.length; i < m.padded; ++i) out[i] = 0;
    }
  }
}

}  // namespace

template <typename From>
void ConvertRuns(const ConvertMove<From>& move) {
  if (move.length == move.padded && move.length == 16) return ConvertRunsOf<16>(move);
  if (move.length == move.padded && move.length == 32) return ConvertRunsOf<32>(move);
  ConvertAnyRuns(move);
}

template void ConvertRuns(const ConvertMove<float>&);
template void ConvertRuns(const ConvertMove<uint16_t>&);

}  // namespace tilesmith::TILESMITH_ISA
