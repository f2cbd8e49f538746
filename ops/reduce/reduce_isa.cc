#include "ops/kernels/vectors.h"
#include "ops/reduce/reduce_loops.h"

HWY_BEFORE_NAMESPACE();
namespace tilesmith::TILESMITH_ISA {
namespace {

template <ReduceStep kStep>
constexpr float Neutral() {
  if constexpr (kStep == ReduceStep::kMax) return -__builtin_inff();
  if constexpr (kStep == ReduceStep::kMin) return __builtin_inff();
  return kStep == ReduceStep::kProduct ? 1.0f : 0.0f;
}

template <ReduceStep kStep, typename V>
HWY_INLINE V Together(V total, V value) {
  if constexpr (kStep == ReduceStep::kMax) return Larger(total, value);
  if constexpr (kStep == ReduceStep::kMin) return Smaller(total, value);
  if constexpr (kStep == ReduceStep::kProduct) return hn::Mul(total, value);
  return hn::Add(total, value);
}

// `total` with one more element.
template <ReduceStep kStep, class D, typename V>
HWY_INLINE V Taken(D d, V total, V x, V shift) {
  if constexpr (kStep == ReduceStep::kSumAbs) return hn::Add(total, hn::Abs(hn::Sub(x, shift)));
  if constexpr (kStep == ReduceStep::kSumExp) return hn::Add(total, FullExp(d, hn::Sub(x, shift)));
  if constexpr (kStep == ReduceStep::kSumSquare) {
    const V y = hn::Sub(x, shift);
    return hn::MulAdd(y, y, total);
  }
  return Together<kStep>(total, x);
}

template <ReduceStep kStep>
float OverRun(const float* in, int64_t count, float shift) {
  const FloatTag d;
  const FloatVector shifts = hn::Set(d, shift);
  FloatVector a = hn::Set(d, Neutral<kStep>()), b = a, c = a, e = a;
  int64_t i = 0;
  for (; i + 4 * kFloatLanes <= count; i += 4 * kFloatLanes) {
    a = Taken<kStep>(d, a, hn::LoadU(d, in + i), shifts);
    b = Taken<kStep>(d, b, hn::LoadU(d, in + i + kFloatLanes), shifts);
    c = Taken<kStep>(d, c, hn::LoadU(d, in + i + 2 * kFloatLanes), shifts);
    e = Taken<kStep>(d, e, hn::LoadU(d, in + i + 3 * kFloatLanes), shifts);
  }
  for (; i + kFloatLanes <= count; i += kFloatLanes) a = Taken<kStep>(d, a, hn::LoadU(d, in + i), shifts);
  HWY_ALIGN float lanes[kFloatLanes];
  hn::Store(Together<kStep>(Together<kStep>(a, b), Together<kStep>(c, e)), d, lanes);
  const hn::CappedTag<float, 1> one;
  auto total = hn::Set(one, lanes[0]);
  for (int64_t lane = 1; lane < kFloatLanes; ++lane)
    total = Together<kStep>(total, hn::Set(one, lanes[lane]));
  for (; i < count; ++i) total = Taken<kStep>(one, total, hn::Set(one, in[i]), hn::Set(one, shift));
  return hn::GetLane(total);
}

template <ReduceStep kStep>
void OverRows(const ReduceRowsArgs& args) {
  for (int64_t i = 0; i < args.columns; ++i) args.totals[i] = Neutral<kStep>();
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* in = args.in + row * args.row_stride;
    ForEachVector(args.columns, [&](auto d, int64_t i) {
      const auto shift = args.shifts == nullptr ? hn::Zero(d) : hn::LoadU(d, args.shifts + i);
      const auto total = hn::LoadU(d, args.totals + i);
      hn::StoreU(Taken<kStep>(d, total, hn::LoadU(d, in + i), shift), d, args.totals + i);
    });
  }
}

// Calls body.template operator()<step>().
template <typename Body>
HWY_INLINE auto WithStep(ReduceStep step, const Body& body) {
  switch (step) {
    case ReduceStep::kSumAbs:
      return body.template operator()<ReduceStep::kSumAbs>();
    case ReduceStep::kSumSquare:
      return body.template operator()<ReduceStep::kSumSquare>();
    case ReduceStep::kSumExp:
      return body.template operator()<ReduceStep::kSumExp>();
    case ReduceStep::kProduct:
      return body.template operator()<ReduceStep::kProduct>();
    case ReduceStep::kMax:
      return body.template operator()<ReduceStep::kMax>();
    case ReduceStep::kMin:
      return body.template operator()<ReduceStep::kMin>();
    case ReduceStep::kSum:
      break;
  }
  return body.template operator()<ReduceStep::kSum>();
}

}  // namespace

float ReduceRun(ReduceStep step, const float* in, int64_t count, float shift) {
  return WithStep(step, [&]<ReduceStep kStep>() { return OverRun<kStep>(in, count, shift); });
}

void ReduceRows(ReduceStep step, const ReduceRowsArgs& args) {
  WithStep(step, [&]<ReduceStep kStep>() { OverRows<kStep>(args); });
}

void NormalizeRun(const NormalizeRunArgs& args) {
  ForEachVector(args.count, [&](auto d, int64_t i) {
    const auto x =
        hn::Mul(hn::Sub(hn::LoadU(d, args.in + i), hn::Set(d, args.mean)), hn::Set(d, args.factor));
    const auto scale = args.by_element ? hn::LoadU(d, args.scale + i) : hn::Set(d, *args.scale);
    const auto shift = args.by_element ? hn::LoadU(d, args.shift + i) : hn::Set(d, *args.shift);
    hn::StoreU(hn::MulAdd(x, scale, shift), d, args.out + i);
  });
}

}  // namespace tilesmith::TILESMITH_ISA
HWY_AFTER_NAMESPACE();
