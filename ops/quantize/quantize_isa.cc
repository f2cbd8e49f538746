#include "ops/kernels/vectors.h"
#include "ops/quantize/quantize_loops.h"

HWY_BEFORE_NAMESPACE();
namespace tilesmith::TILESMITH_ISA {
namespace {

// The ends of a type's range, which <limits> would say with inline code.
template <typename Stored>
constexpr bool kSigned = static_cast<Stored>(-1) < static_cast<Stored>(0);
template <typename Stored>
constexpr int32_t kHigh = (1 << (8 * sizeof(Stored) - (kSigned<Stored> ? 1 : 0))) - 1;
template <typename Stored>
constexpr int32_t kLow = kSigned<Stored> ? -kHigh<Stored> - 1 : 0;

template <typename Stored, class D, typename V, typename I>
HWY_INLINE void StoreQuantized(D d, V real, V scale, I zero, Stored* out) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<Stored, D> ds;
  const V low = hn::ConvertTo(d, hn::Sub(hn::Set(di, kLow<Stored>), zero));
  const V high = hn::ConvertTo(d, hn::Sub(hn::Set(di, kHigh<Stored>), zero));
  // A NaN is passed over, so that it becomes the low end.
  const V quotient = Smaller(Larger(low, hn::Div(real, scale)), high);
  const I steps = hn::ConvertTo(di, hn::Round(quotient));
  hn::StoreU(hn::DemoteTo(ds, hn::Add(steps, zero)), ds, out);
}

template <typename Stored, class D, typename I>
HWY_INLINE auto LoadSteps(D d, const Stored* in, I zero) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<Stored, D> ds;
  if constexpr (sizeof(Stored) == 4) {
    return hn::ConvertTo(d, hn::LoadU(ds, in));
  } else {
    return hn::ConvertTo(d, hn::Sub(hn::PromoteTo(di, hn::LoadU(ds, in)), zero));
  }
}

}  // namespace

template <typename Stored>
void QuantizeRow(const float* in, Stored* out, const ScaledRow& row) {
  const float scale = row.scale[0];
  const int32_t zero = row.zero_point[0];
  if (row.step == 0) {
    ForEachVector(row.count, [&](auto d, int64_t i) {
      const hn::RebindToSigned<decltype(d)> di;
      StoreQuantized(d, hn::LoadU(d, in + i), hn::Set(d, scale), hn::Set(di, zero), out + i);
    });
  } else {
    ForEachVector(row.count, [&](auto d, int64_t i) {
      const hn::RebindToSigned<decltype(d)> di;
      StoreQuantized(d, hn::LoadU(d, in + i), hn::LoadU(d, row.scale + i), hn::LoadU(di, row.zero_point + i),
                     out + i);
    });
  }
}

template <typename Stored>
void DequantizeRow(const Stored* in, float* out, const ScaledRow& row) {
  const float scale = row.scale[0];
  const int32_t zero = row.zero_point[0];
  if (row.step == 0) {
    ForEachVector(row.count, [&](auto d, int64_t i) {
      const hn::RebindToSigned<decltype(d)> di;
      hn::StoreU(hn::Mul(LoadSteps(d, in + i, hn::Set(di, zero)), hn::Set(d, scale)), d, out + i);
    });
  } else {
    ForEachVector(row.count, [&](auto d, int64_t i) {
      const hn::RebindToSigned<decltype(d)> di;
      const auto steps = LoadSteps(d, in + i, hn::LoadU(di, row.zero_point + i));
      hn::StoreU(hn::Mul(steps, hn::LoadU(d, row.scale + i)), d, out + i);
    });
  }
}

template void QuantizeRow(const float*, uint8_t*, const ScaledRow&);
template void QuantizeRow(const float*, int8_t*, const ScaledRow&);
template void QuantizeRow(const float*, uint16_t*, const ScaledRow&);
template void QuantizeRow(const float*, int16_t*, const ScaledRow&);
template void DequantizeRow(const uint8_t*, float*, const ScaledRow&);
template void DequantizeRow(const int8_t*, float*, const ScaledRow&);
template void DequantizeRow(const uint16_t*, float*, const ScaledRow&);
template void DequantizeRow(const int16_t*, float*, const ScaledRow&);
template void DequantizeRow(const int32_t*, float*, const ScaledRow&);

}  // namespace tilesmith::TILESMITH_ISA
HWY_AFTER_NAMESPACE();
