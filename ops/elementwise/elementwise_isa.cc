#include "ops/elementwise/elementwise_loops.h"
#include "ops/kernels/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace tilesmith::TILESMITH_ISA {
namespace {

template <BinaryKind kOp, class D, typename V>
HWY_INLINE V Combine(D d, V a, V b) {
  if constexpr (kOp == BinaryKind::kAdd) return hn::Add(a, b);
  if constexpr (kOp == BinaryKind::kSub) return hn::Sub(a, b);
  if constexpr (kOp == BinaryKind::kMul) return hn::Mul(a, b);
  if constexpr (kOp == BinaryKind::kDiv) return hn::Div(a, b);
  if constexpr (kOp == BinaryKind::kMin) return KeepNan(b, Smaller(a, b));
  if constexpr (kOp == BinaryKind::kMax) return KeepNan(b, Larger(a, b));
  if constexpr (kOp == BinaryKind::kPRelu) return hn::IfThenElse(hn::Ge(a, hn::Zero(d)), a, hn::Mul(a, b));
}

// One row. kA and kB: how far the operands move from one column to the next, 0 or 1.
template <BinaryKind kOp, int kA, int kB, typename T>
HWY_INLINE void OneRow(const T* a, const T* b, T* out, int64_t count) {
  const float first_a = LoadOne(a), first_b = LoadOne(b);
  ForEachVector(count, [&](auto d, int64_t i) {
    const auto x = kA == 0 ? hn::Set(d, first_a) : LoadFloats(d, a + i);
    const auto y = kB == 0 ? hn::Set(d, first_b) : LoadFloats(d, b + i);
    StoreFloats(Combine<kOp>(d, x, y), d, out + i);
  });
}

template <BinaryKind kOp, int kA, int kB, typename T>
void Rows(const BinaryLoop<T>& loop) {
  for (int64_t row = 0; row < loop.rows; ++row) {
    OneRow<kOp, kA, kB>(loop.a + row * loop.a_row, loop.b + row * loop.b_row, loop.out + row * loop.out_row,
                        loop.columns);
  }
}

// For short rows of adjacent elements against one and the same row of `b`: that row, repeated until it is
// long enough for whole vectors.
template <BinaryKind kOp, typename T>
void RepeatedRow(const BinaryLoop<T>& loop) {
  constexpr int64_t kMaxColumns = kFloatLanes;
  T repeated[kMaxColumns * kFloatLanes];
  for (int64_t i = 0; i < loop.columns * kFloatLanes; ++i) repeated[i] = loop.b[i % loop.columns];
  const int64_t period = loop.columns * kFloatLanes, count = loop.rows * loop.columns;
  for (int64_t i = 0; i < count; i += period) {
    OneRow<kOp, 1, 1>(loop.a + i, repeated, loop.out + i, count - i < period ? count - i : period);
  }
}

template <BinaryKind kOp, typename T>
void AnyRows(const BinaryLoop<T>& loop) {
  if (loop.out_column == 1 && loop.a_column == 1 && loop.b_column == 1) {
    const bool repeats = loop.rows > 1 && loop.columns < kFloatLanes && loop.b_row == 0 &&
                         loop.a_row == loop.columns && loop.out_row == loop.columns;
    return repeats ? RepeatedRow<kOp>(loop) : Rows<kOp, 1, 1>(loop);
  }
  if (loop.out_column == 1 && loop.a_column == 1 && loop.b_column == 0) return Rows<kOp, 1, 0>(loop);
  if (loop.out_column == 1 && loop.a_column == 0 && loop.b_column == 1) return Rows<kOp, 0, 1>(loop);
  const hn::CappedTag<float, 1> d;
  for (int64_t row = 0; row < loop.rows; ++row) {
    for (int64_t i = 0; i < loop.columns; ++i) {
      const auto a = LoadFloats(d, loop.a + row * loop.a_row + i * loop.a_column);
      const auto b = LoadFloats(d, loop.b + row * loop.b_row + i * loop.b_column);
      StoreFloats(Combine<kOp>(d, a, b), d, loop.out + row * loop.out_row + i * loop.out_column);
    }
  }
}

// In double, but for the powers that networks have.
template <typename T>
void PowRows(const BinaryLoop<T>& loop) {
  for (int64_t row = 0; row < loop.rows; ++row) {
    const T* a = loop.a + row * loop.a_row;
    const T* b = loop.b + row * loop.b_row;
    T* out = loop.out + row * loop.out_row;
    const float first = LoadOne(b);
    if (loop.b_column == 0 && (first == 2.0f || first == 3.0f)) {
      const bool cube = first == 3.0f;
      for (int64_t i = 0; i < loop.columns; ++i) {
        const float x = LoadOne(a + i * loop.a_column);
        StoreOne(cube ? x * x * x : x * x, out + i * loop.out_column);
      }
      continue;
    }
    for (int64_t i = 0; i < loop.columns; ++i) {
      const float x = LoadOne(a + i * loop.a_column), power = LoadOne(b + i * loop.b_column);
      StoreOne(static_cast<float>(elementary::Pow(x, power)), out + i * loop.out_column);
    }
  }
}

// out = function(in, a, b) lane by lane: across pixels when there is one lane, else across lanes.
template <typename T, typename Function>
HWY_INLINE void OverLanes(const LaneLoop<T>& loop, const Function& function) {
  if (loop.lanes == 1) {
    const float a = loop.a[0], b = loop.b[0];
    ForEachVector(loop.pixels, [&](auto d, int64_t i) {
      StoreFloats(function(d, LoadFloats(d, loop.in + i), hn::Set(d, a), hn::Set(d, b)), d, loop.out + i);
    });
    return;
  }
  for (int64_t pixel = 0; pixel < loop.pixels; ++pixel) {
    const T* in = loop.in + pixel * loop.lanes;
    T* out = loop.out + pixel * loop.lanes;
    ForEachVector(loop.lanes, [&](auto d, int64_t i) {
      const auto a = hn::LoadU(d, loop.a + i), b = hn::LoadU(d, loop.b + i);
      StoreFloats(function(d, LoadFloats(d, in + i), a, b), d, out + i);
    });
  }
}

}  // namespace

template <typename T>
void ActivateRun(const T* in, T* out, int64_t count, Activation activation) {
  WithActivation(activation.kind, [&]<ActivationKind kKind>() {
    MapRun(in, out, count,
           [&](auto d, auto x) { return Activate<kKind>(d, x, activation.alpha, activation.beta); });
  });
}

template <typename T>
void ScaleShiftLanes(const LaneLoop<T>& loop, Activation activation) {
  WithActivation(activation.kind, [&]<ActivationKind kKind>() {
    OverLanes(loop, [&](auto d, auto x, auto scale, auto shift) {
      return Activate<kKind>(d, FusedMulAdd(x, scale, shift), activation.alpha, activation.beta);
    });
  });
}

template <typename T>
void PReluLanes(const LaneLoop<T>& loop) {
  OverLanes(loop, [](auto d, auto x, auto slope, auto) { return Combine<BinaryKind::kPRelu>(d, x, slope); });
}

template <typename T>
void BinaryRows(BinaryKind op, const BinaryLoop<T>& loop) {
  switch (op) {
    case BinaryKind::kAdd:
      return AnyRows<BinaryKind::kAdd>(loop);
    case BinaryKind::kSub:
      return AnyRows<BinaryKind::kSub>(loop);
    case BinaryKind::kMul:
      return AnyRows<BinaryKind::kMul>(loop);
    case BinaryKind::kDiv:
      return AnyRows<BinaryKind::kDiv>(loop);
    case BinaryKind::kPow:
      return PowRows(loop);
    case BinaryKind::kMin:
      return AnyRows<BinaryKind::kMin>(loop);
    case BinaryKind::kMax:
      return AnyRows<BinaryKind::kMax>(loop);
    case BinaryKind::kPRelu:
      return AnyRows<BinaryKind::kPRelu>(loop);
  }
}

template <typename T>
void SumRun(const InputView* inputs, int64_t input_count, int64_t image, int64_t offset, T* out,
            int64_t count) {
  ForEachVector(count, [&](auto d, int64_t i) {
    auto sum = hn::Zero(d);
    for (int64_t k = 0; k < input_count; ++k) {
      sum = hn::Add(sum, LoadFloats(d, inputs[k].image<T>(image) + offset + i));
    }
    StoreFloats(sum, d, out + i);
  });
}

// T is a type. NOLINTBEGIN(bugprone-macro-parentheses)
#define TILESMITH_LOOPS_OF(T)                                    \
  template void ActivateRun(const T*, T*, int64_t, Activation);  \
  template void ScaleShiftLanes(const LaneLoop<T>&, Activation); \
  template void PReluLanes(const LaneLoop<T>&);                  \
  template void BinaryRows(BinaryKind, const BinaryLoop<T>&);    \
  template void SumRun(const InputView*, int64_t, int64_t, int64_t, T*, int64_t);
// NOLINTEND(bugprone-macro-parentheses)
TILESMITH_INSTANTIATE_STORED(TILESMITH_LOOPS_OF)
#undef TILESMITH_LOOPS_OF

}  // namespace tilesmith::TILESMITH_ISA
HWY_AFTER_NAMESPACE();
