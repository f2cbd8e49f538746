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

// Adding 1.5 * 2^23 rounds to an integer, ties to even, which then sits in the low mantissa bits.
constexpr float kRound = 12582912.0f;
constexpr int32_t kRoundBits = 0x4b400000;

// `shifted` are steps plus kRound.
template <class D, typename Byte>
HWY_INLINE void StoreSteps(D, hn::VFromD<D> shifted, int32_t zero, Byte* out) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint8_t, D> du;
  const auto stored = hn::Add(hn::BitCast(di, shifted), hn::Set(di, zero - kRoundBits));
  hn::StoreU(hn::TruncateTo(du, hn::BitCast(hn::RebindToUnsigned<D>(), stored)), du,
             reinterpret_cast<uint8_t*>(out));
}

template <bool kAdd, typename Byte>
HWY_INLINE void CombineBytes(const Byte* a, const Byte* b, Byte* out, int64_t count,
                             const ByteBinary& terms) {
  // Steps of the output as a product, which rounds like the quotient unless that lies between two integers:
  // of at most 255 steps it is off by three roundings.
  constexpr float kProductError = 1e-4f;
  const ByteBinary t = terms;
  const float inverse = 1 / t.scale;
  const bool near = t.scale > 1e-30f && t.scale < 1e30f;  // else it may be no normal number
  ForEachVector(count, [&](auto d, int64_t i) {
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
    auto quotient = Smaller(Larger(low, hn::Mul(real, hn::Set(d, inverse))), high);
    auto shifted = hn::Add(quotient, hn::Set(d, kRound));
    const auto from_integer = hn::Abs(hn::Sub(quotient, hn::Sub(shifted, hn::Set(d, kRound))));
    if (HWY_UNLIKELY(!near || !hn::AllTrue(d, hn::Lt(from_integer, hn::Set(d, 0.5f - kProductError))))) {
      quotient = Smaller(Larger(low, hn::Div(real, hn::Set(d, t.scale))), high);
      shifted = hn::Add(quotient, hn::Set(d, kRound));
    }
    StoreSteps(d, shifted, t.zero, out + i);
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

template <typename Byte>
void AddToSums(const Byte* in, int32_t* sums, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sums[i] += in[i];
}

template <typename Byte>
void RoundMeans(const int32_t* sums, Byte* out, int64_t count, const MeanTerms& terms) {
  const MeanTerms t = terms;
  ForEachVector(count, [&](auto d, int64_t i) {
    const hn::RebindToSigned<decltype(d)> di;
    const auto real = hn::Mul(hn::ConvertTo(d, hn::LoadU(di, sums + i)), hn::Set(d, t.scale));
    const auto steps = hn::Div(hn::Div(real, hn::Set(d, t.divisor)), hn::Set(d, t.out_scale));
    const auto low = hn::Set(d, static_cast<float>(t.low - t.zero));
    const auto high = hn::Set(d, static_cast<float>(t.high - t.zero));
    StoreSteps(d, hn::Add(Smaller(Larger(low, steps), high), hn::Set(d, kRound)), t.zero, out + i);
  });
}

template void AddBytes(const uint8_t*, const uint8_t*, uint8_t*, int64_t, const ByteBinary&);
template void AddBytes(const int8_t*, const int8_t*, int8_t*, int64_t, const ByteBinary&);
template void MultiplyBytes(const uint8_t*, const uint8_t*, uint8_t*, int64_t, const ByteBinary&);
template void MultiplyBytes(const int8_t*, const int8_t*, int8_t*, int64_t, const ByteBinary&);
template void MaximizeBytes(const uint8_t*, uint8_t*, int64_t);
template void MaximizeBytes(const int8_t*, int8_t*, int64_t);
template void AddToSums(const uint8_t*, int32_t*, int64_t);
template void AddToSums(const int8_t*, int32_t*, int64_t);
template void RoundMeans(const int32_t*, uint8_t*, int64_t, const MeanTerms&);
template void RoundMeans(const int32_t*, int8_t*, int64_t, const MeanTerms&);

}  // namespace tilesmith::TILESMITH_ISA
HWY_AFTER_NAMESPACE();
