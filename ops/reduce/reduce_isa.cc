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

constexpr bool IsSum(ReduceStep step) {
  return step != ReduceStep::kProduct && step != ReduceStep::kMax && step != ReduceStep::kMin;
}

constexpr int64_t kDoubleLanes = kFloatLanes > 1 ? kFloatLanes / 2 : 1;
using DoubleTag = hn::CappedTag<double, kDoubleLanes>;
using DoubleVector = hn::VFromD<DoubleTag>;

// Half as many sums of doubles.
HWY_INLINE DoubleVector InDoubles(FloatVector v) {
  const DoubleTag d;
#if HWY_TARGET == HWY_SCALAR
  return hn::PromoteTo(d, v);
#else
  const hn::Half<FloatTag> half;
  return hn::Add(hn::PromoteTo(d, hn::LowerHalf(half, v)), hn::PromoteTo(d, hn::UpperHalf(half, v)));
#endif
}
HWY_INLINE double SumOfLanes(DoubleVector v) {
  HWY_ALIGN double lanes[kDoubleLanes];
  hn::Store(v, DoubleTag(), lanes);
  for (int64_t half = kDoubleLanes / 2; half > 0; half /= 2)
    for (int64_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

template <ReduceStep kStep>
double OverRun(const float* in, int64_t count, float shift) {
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
  const hn::CappedTag<float, 1> one;
  auto rest = hn::Set(one, Neutral<kStep>());
  for (; i < count; ++i) rest = Taken<kStep>(one, rest, hn::Set(one, in[i]), hn::Set(one, shift));
  if constexpr (IsSum(kStep)) {
    const DoubleVector total =
        hn::Add(hn::Add(InDoubles(a), InDoubles(b)), hn::Add(InDoubles(c), InDoubles(e)));
    return SumOfLanes(total) + static_cast<double>(hn::GetLane(rest));
  } else {
    HWY_ALIGN float lanes[kFloatLanes];
    hn::Store(Together<kStep>(Together<kStep>(a, b), Together<kStep>(c, e)), d, lanes);
    auto total = rest;
    for (int64_t lane = 0; lane < kFloatLanes; ++lane)
      total = Together<kStep>(total, hn::Set(one, lanes[lane]));
    return static_cast<double>(hn::GetLane(total));
  }
}

// In groups of rows whose total stays in a register, and which are as many as are added up one by one.
template <ReduceStep kStep>
void OverRows(const ReduceRowsArgs& args) {
  constexpr int64_t kGroup = 16;
  for (int64_t row = 0; row < args.rows; row += kGroup) {
    const float* in = args.in + row * args.row_stride;
    const int64_t rows = args.rows - row < kGroup ? args.rows - row : kGroup;
    ForEachVector(args.columns, [&](auto d, int64_t i) {
      const auto shift = args.shifts == nullptr ? hn::Zero(d) : hn::LoadU(d, args.shifts + i);
      auto total = hn::Set(d, Neutral<kStep>());
      for (int64_t k = 0; k < rows; ++k)
        total = Taken<kStep>(d, total, hn::LoadU(d, in + k * args.row_stride + i), shift);
      if (row > 0) total = Together<kStep>(hn::LoadU(d, args.totals + i), total);
      hn::StoreU(total, d, args.totals + i);
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

double ReduceRun(ReduceStep step, const float* in, int64_t count, float shift) {
  return WithStep(step, [&]<ReduceStep kStep>() { return OverRun<kStep>(in, count, shift); });
}

void ReduceRows(ReduceStep step, const ReduceRowsArgs& args) {
  WithStep(step, [&]<ReduceStep kStep>() { OverRows<kStep>(args); });
}

Moments MomentsOf(const float* in, int64_t count, float center) {
  constexpr int64_t kStep = 2 * kFloatLanes, kAdded = 8;
  const FloatTag d;
  const FloatVector centers = hn::Set(d, center), zero = hn::Zero(d);
  DoubleVector all_sums = hn::Zero(DoubleTag()), all_squares = all_sums;
  int64_t i = 0;
  while (i + kFloatLanes <= count) {
    FloatVector even = zero, odd = zero, even_squares = zero, odd_squares = zero;
    const auto take = [&](int64_t at, FloatVector& sum, FloatVector& squares) {
      const FloatVector x = hn::Sub(hn::LoadU(d, in + at), centers);
      sum = hn::Add(sum, x);
      squares = hn::MulAdd(x, x, squares);
    };
    const int64_t end = count - i < kAdded * kStep ? count : i + kAdded * kStep;
    for (; i + kStep <= end; i += kStep) {
      take(i, even, even_squares);
      take(i + kFloatLanes, odd, odd_squares);
    }
    if (i + kFloatLanes <= end) {
      take(i, even, even_squares);
      i += kFloatLanes;
    }
    all_sums = hn::Add(all_sums, InDoubles(hn::Add(even, odd)));
    all_squares = hn::Add(all_squares, InDoubles(hn::Add(even_squares, odd_squares)));
  }
  double sum = SumOfLanes(all_sums), squares = SumOfLanes(all_squares);
  for (; i < count; ++i) {
    const double x = static_cast<double>(in[i]) - static_cast<double>(center);
    sum += x;
    squares += x * x;
  }
  return {sum, squares};
}

void NormalizeRun(const NormalizeRunArgs& run) {
  const NormalizeRunArgs args = run;  // which no store can change
  ForEachVector(args.count, [&](auto d, int64_t i) {
    const auto x = hn::MulAdd(hn::Sub(hn::LoadU(d, args.in + i), hn::Set(d, args.center)),
                              hn::Set(d, args.factor), hn::Set(d, args.rest));
    if (args.scale == nullptr) {
      hn::StoreU(x, d, args.out + i);
    } else {
      hn::StoreU(hn::MulAdd(x, hn::LoadU(d, args.scale + i), hn::LoadU(d, args.shift + i)), d, args.out + i);
    }
  });
}

}  // namespace tilesmith::TILESMITH_ISA
HWY_AFTER_NAMESPACE();
