#include "ops/kernels/vectors.h"
#include "ops/quantize/byte_loops.h"

HWY_BEFORE_NAMESPACE();
namespace tilesmith::TILESMITH_ISA {
namespace {

template <class D, typename Byte>
HWY_INLINE hn::VFromD<D> LoadReal(D d, const Byte* in, int32_t zero, float scale) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<Byte, D> db;
  const auto steps = hn::Sub(hn::PromoteTo(di, hn::LoadU(db, in)), hn::Set(di, zero));
  return hn::Mul(hn::ConvertTo(d, steps), hn::Set(d, scale));
}

template <bool kAdd, typename Byte>
HWY_INLINE void CombineBytes(const Byte* a, const Byte* b, Byte* out, int64_t count,
                             const ByteBinary& terms) {
  const ByteBinary t = terms;
  ForEachVector(count, [&](auto d, int64_t i) {
    const hn::RebindToSigned<decltype(d)> di;
    const hn::Rebind<Byte, decltype(d)> db;
    const auto left = LoadReal(d, a + i, t.a_zero, t.a_scale),
               right = LoadReal(d, b + i, t.b_zero, t.b_scale);
    auto real = left;
    if constexpr (kAdd) {
      real = hn::Add(left, right);
    } else {
      real = hn::Mul(left, right);
    }
    const auto low = hn::Set(d, static_cast<float>(t.low - t.zero));
    const auto high = hn::Set(d, static_cast<float>(t.high - t.zero));
    const auto quotient = Smaller(Larger(low, hn::Div(real, hn::Set(d, t.scale))), high);
    const auto steps = hn::ConvertTo(di, hn::Round(quotient));
    hn::StoreU(hn::DemoteTo(db, hn::Add(steps, hn::Set(di, t.zero))), db, out + i);
  });
}

}  // namespace

template <typename Byte>
void AddBytes(const Byte* a, const Byte* b, Byte* out, int64_t count, const ByteBinary& terms) {
  CombineBytes<true>(a, b, out, count, terms);
}

template <typename Byte>
void MultiplyBytes(const Byte* a, const Byte* b, Byte* out, int64_t count, const ByteBinary& terms) {
  CombineBytes<false>(a, b, out, count, terms);
}

template <typename Byte>
void MaximizeBytes(const Byte* in, Byte* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = in[i] > out[i] ? in[i] : out[i];
}

template void AddBytes(const uint8_t*, const uint8_t*, uint8_t*, int64_t, const ByteBinary&);
template void AddBytes(const int8_t*, const int8_t*, int8_t*, int64_t, const ByteBinary&);
template void MultiplyBytes(const uint8_t*, const uint8_t*, uint8_t*, int64_t, const ByteBinary&);
template void MultiplyBytes(const int8_t*, const int8_t*, int8_t*, int64_t, const ByteBinary&);
template void MaximizeBytes(const uint8_t*, uint8_t*, int64_t);
template void MaximizeBytes(const int8_t*, int8_t*, int64_t);

}  // namespace tilesmith::TILESMITH_ISA
HWY_AFTER_NAMESPACE();
