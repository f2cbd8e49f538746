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
    return FusedMulAdd(y, y, total);
  }
  return Together<kStep>(total, x);
}

constexpr bool IsSum(ReduceStep step) {
  return step != ReduceStep::kProduct && step != ReduceStep::kMax && step != ReduceStep::kMin;
}

constexpr int64_t kDoubleLanes = kFloatLanes > 1 ? kFloatLanes / 2 : 1;
using DoubleTag = hn::CappedTag<double, kDoubleLanes>;
using DoubleVector = hn::VFromD<DoubleTag>;

// Eight sums of doubles.
constexpr int kEightParts = static_cast<int>(8 / kDoubleLanes);
struct EightDoubles {
  DoubleVector part[kEightParts];
};

// Lane j of sixteen, and lane j + 8.
HWY_INLINE EightDoubles InDoubles(const Sixteen& v) {
  const DoubleTag d;
  EightDoubles sums;
#if HWY_TARGET == HWY_SCALAR
  for (int p = 0; p < 8; ++p)
    sums.part[p] = hn::Add(hn::PromoteTo(d, v.part[p]), hn::PromoteTo(d, v.part[p + 8]));
#else
  const hn::Half<FloatTag> half;
  const auto low = [&](FloatVector part) { return hn::PromoteTo(d, hn::LowerHalf(half, part)); };
  const auto high = [&](FloatVector part) { return hn::PromoteTo(d, hn::UpperHalf(half, part)); };
  if constexpr (kSixteenParts == 1) {
    sums.part[0] = hn::Add(low(v.part[0]), high(v.part[0]));
  } else {
    for (int p = 0; p < kSixteenParts / 2; ++p) {
      sums.part[2 * p] = hn::Add(low(v.part[p]), low(v.part[p + kSixteenParts / 2]));
      sums.part[2 * p + 1] = hn::Add(high(v.part[p]), high(v.part[p + kSixteenParts / 2]));
    }
  }
#endif
  return sums;
}
HWY_INLINE EightDoubles Added(EightDoubles a, const EightDoubles& b) {
  for (int p = 0; p < kEightParts; ++p) a.part[p] = hn::Add(a.part[p], b.part[p]);
  return a;
}
HWY_INLINE double SumOfEight(const EightDoubles& v) {
  HWY_ALIGN double lanes[8];
  for (int p = 0; p < kEightParts; ++p) hn::Store(v.part[p], DoubleTag(), lanes + p * kDoubleLanes);
  for (int half = 4; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

// What changes no total, whatever the shift.
template <ReduceStep kStep>
HWY_INLINE float NothingTaken(float shift) {
  if constexpr (kStep == ReduceStep::kSumAbs || kStep == ReduceStep::kSumSquare) return shift;
  if constexpr (kStep == ReduceStep::kSumExp) return -__builtin_inff();
  return Neutral<kStep>();
}

template <ReduceStep kStep>
double OverRun(const float* in, int64_t count, float shift) {
  const FloatTag d;
  const FloatVector shifts = hn::Set(d, shift);
  const auto take = [&](FloatVector total, FloatVector x) { return Taken<kStep>(d, total, x, shifts); };
  Sixteen all[4];  // elements 16 (4 t + q) to 16 (4 t + q) + 15 go to all[q]
  for (Sixteen& each : all) each = SetSixteen(Neutral<kStep>());
  int64_t i = 0;
  for (; i + 64 <= count; i += 64) {
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) JoinSixteen(all[q], in + i + 16 * q, take);
  }
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q) {
    if (i + 16 <= count) {
      JoinSixteen(all[q], in + i, take);
    } else if (i < count) {
      JoinFirst(all[q], in + i, count - i, NothingTaken<kStep>(shift), take);
    }
    i += 16;
  }
  if constexpr (IsSum(kStep)) {
    return SumOfEight(
        Added(Added(InDoubles(all[0]), InDoubles(all[1])), Added(InDoubles(all[2]), InDoubles(all[3]))));
  } else {
    const auto together = [](auto a, auto b) { return Together<kStep>(a, b); };
    for (int half = 2; half > 0; half /= 2) {
      for (int q = 0; q < half; ++q)
        for (int p = 0; p < kSixteenParts; ++p)
          all[q].part[p] = together(all[q].part[p], all[q + half].part[p]);
    }
    return static_cast<double>(JoinedLanes(all[0], together));
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
  constexpr int64_t kAdded = 256;  // elements whose sums are of floats
  const FloatTag d;
  const FloatVector centers = hn::Set(d, center), zero = hn::Zero(d);
  EightDoubles all_sums, all_squares;
  for (int p = 0; p < kEightParts; ++p) all_sums.part[p] = all_squares.part[p] = hn::Zero(DoubleTag());
  for (int64_t i = 0; i < count;) {
    // Of elements 32 t to 32 t + 15, and of those behind them.
    Sixteen sums[2], squares[2];
    for (int q = 0; q < 2; ++q)
      for (int p = 0; p < kSixteenParts; ++p) sums[q].part[p] = squares[q].part[p] = zero;
    const auto take = [&](int q, int p, FloatVector value) {
      const FloatVector x = hn::Sub(value, centers);
      sums[q].part[p] = hn::Add(sums[q].part[p], x);
      squares[q].part[p] = FusedMulAdd(x, x, squares[q].part[p]);
    };
    const int64_t end = count - i < kAdded ? count : i + kAdded;
    for (; i + 32 <= end; i += 32) {
#pragma GCC unroll 32
      for (int at = 0; at < 2 * kSixteenParts; ++at)
        take(at / kSixteenParts, at % kSixteenParts, hn::LoadU(d, in + i + at * kFloatLanes));
    }
#pragma GCC unroll 32
    for (int at = 0; at < 2 * kSixteenParts; ++at) {
      if (i + kFloatLanes <= end) {
        take(at / kSixteenParts, at % kSixteenParts, hn::LoadU(d, in + i));
      } else if (i < end) {
        take(at / kSixteenParts, at % kSixteenParts, LoadFirst(d, in + i, end - i, center));
      }
      i += kFloatLanes;
    }
    for (int p = 0; p < kSixteenParts; ++p) {
      sums[0].part[p] = hn::Add(sums[0].part[p], sums[1].part[p]);
      squares[0].part[p] = hn::Add(squares[0].part[p], squares[1].part[p]);
    }
    all_sums = Added(all_sums, InDoubles(sums[0]));
    all_squares = Added(all_squares, InDoubles(squares[0]));
    i = end;
  }
  return {SumOfEight(all_sums), SumOfEight(all_squares)};
}

void NormalizeRun(const NormalizeRunArgs& run) {
  const NormalizeRunArgs args = run;  // which no store can change
  ForEachVector(args.count, [&](auto d, int64_t i) {
    const auto x = FusedMulAdd(hn::Sub(hn::LoadU(d, args.in + i), hn::Set(d, args.center)),
                               hn::Set(d, args.factor), hn::Set(d, args.rest));
    if (args.scale == nullptr) {
      hn::StoreU(x, d, args.out + i);
    } else {
      hn::StoreU(FusedMulAdd(x, hn::LoadU(d, args.scale + i), hn::LoadU(d, args.shift + i)), d, args.out + i);
    }
  });
}

}  // namespace tilesmith::TILESMITH_ISA
HWY_AFTER_NAMESPACE();
