#include "ops/elementwise/elementwise_loops.h"
#include "ops/kernels/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace tilesmith::TILESMITH_ISA {
namespace {

template <FunctionKind kKind, class D, typename V>
HWY_INLINE V Call(D d, V x, const Function& function) {
  using enum FunctionKind;
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0f);
  const V alpha = hn::Set(d, function.alpha), beta = hn::Set(d, function.beta);
  if constexpr (kKind == kAbs) return hn::Abs(x);
  if constexpr (kKind == kAtan) return ArcTangent(d, x);
  // Zeros have the sign of x, which Highway does not say.
  if constexpr (kKind == kCeil) return hn::CopySign(hn::Ceil(x), x);
  if constexpr (kKind == kCelu) {
    const V below = hn::Mul(alpha, FullExpm1(d, hn::Div(x, alpha)));
    return KeepNan(x, hn::Add(hn::Max(x, zero), hn::Min(below, zero)));
  }
  if constexpr (kKind == kCos) return SineOf<true>(d, x);
  if constexpr (kKind == kElu) {
    return hn::IfThenElse(hn::Ge(x, zero), x, hn::Mul(alpha, FullExpm1(d, x)));
  }
  if constexpr (kKind == kErf) return Erf(d, x);
  if constexpr (kKind == kExp) return FullExp(d, x);
  if constexpr (kKind == kFloor) return hn::CopySign(hn::Floor(x), x);
  if constexpr (kKind == kGelu) {
    // x minus its share of the tail beyond it, or that share alone: nothing cancels out.
    const V bounded = hn::Clamp(x, hn::Set(d, -100.0f), hn::Set(d, 100.0f));
    const V tail = hn::Mul(bounded, NormalTail(d, hn::Abs(bounded)));
    return KeepNan(x, hn::IfThenElse(hn::Gt(x, zero), hn::Sub(x, tail), tail));
  }
  if constexpr (kKind == kGeluTanh) {
    // 1 + tanh(u) = 2 / (1 + e^-2u); Exp being clamped, the numerator must be.
    const V cubic = FusedMulAdd(hn::Mul(hn::Mul(x, x), x), hn::Set(d, 0.044715f), x);
    const V power = FastExp(d, hn::Min(hn::Mul(cubic, hn::Set(d, -1.5957691216f)), hn::Set(d, 87.0f)));
    return KeepNan(x, hn::Mul(hn::Max(x, hn::Set(d, -100.0f)), hn::Div(one, hn::Add(one, power))));
  }
  if constexpr (kKind == kLog) return FullLog(d, x);
  if constexpr (kKind == kMish) {
    // tanh(log(1 + e)) = (e^2 + 2 e) / (e^2 + 2 e + 2)
    const V two = hn::Set(d, 2.0f), e = FastExp(d, hn::Min(x, hn::Set(d, 20.0f))),
            n = hn::Mul(e, hn::Add(e, two));
    return KeepNan(x, hn::Mul(hn::Max(x, hn::Set(d, -88.0f)), hn::Mul(n, hn::Div(one, hn::Add(n, two)))));
  }
  if constexpr (kKind == kNeg) return hn::Neg(x);
  if constexpr (kKind == kReciprocal) return hn::Div(one, x);
  if constexpr (kKind == kRound) return hn::CopySign(hn::Round(x), x);
  if constexpr (kKind == kSelu) {
    return hn::Mul(beta, hn::IfThenElse(hn::Gt(x, zero), x, hn::Mul(alpha, FullExpm1(d, x))));
  }
  if constexpr (kKind == kShrink) {
    const V low = hn::Add(x, alpha), high = hn::Sub(x, alpha);
    const V shrunk = hn::IfThenElse(hn::Lt(x, hn::Neg(beta)), low, hn::IfThenElseZero(hn::Gt(x, beta), high));
    return KeepNan(x, shrunk);
  }
  if constexpr (kKind == kSign) {
    return hn::IfThenElse(hn::Gt(x, zero), one, hn::IfThenElse(hn::Lt(x, zero), hn::Neg(one), x));
  }
  if constexpr (kKind == kSin) return SineOf<false>(d, x);
  if constexpr (kKind == kSoftplus) {
    const V power = FastExp(d, hn::Neg(hn::Abs(x)));
    return KeepNan(x, hn::Add(hn::Max(x, zero), LogOfMore(d, power)));
  }
  if constexpr (kKind == kSoftsign) return hn::Div(x, hn::Add(one, hn::Abs(x)));
  if constexpr (kKind == kSqrt) return hn::Sqrt(x);
  if constexpr (kKind == kThresholdedRelu) return hn::IfThenZeroElse(hn::Le(x, alpha), x);
}

template <FunctionKind kKind, typename T>
void Run(const T* in, T* out, int64_t count, const Function& function) {
  MapRun(in, out, count, [&](auto d, auto x) { return Call<kKind>(d, x, function); });
}

}  // namespace

template <typename T>
void FunctionRun(const T* in, T* out, int64_t count, Function function) {
  switch (function.kind) {
#define TILESMITH_FUNCTION(kind) \
  case FunctionKind::kind:       \
    return Run<FunctionKind::kind>(in, out, count, function);
    TILESMITH_FUNCTION(kAbs)
    TILESMITH_FUNCTION(kAtan)
    TILESMITH_FUNCTION(kCeil)
    TILESMITH_FUNCTION(kCelu)
    TILESMITH_FUNCTION(kCos)
    TILESMITH_FUNCTION(kElu)
    TILESMITH_FUNCTION(kErf)
    TILESMITH_FUNCTION(kExp)
    TILESMITH_FUNCTION(kFloor)
    TILESMITH_FUNCTION(kGelu)
    TILESMITH_FUNCTION(kGeluTanh)
    TILESMITH_FUNCTION(kLog)
    TILESMITH_FUNCTION(kMish)
    TILESMITH_FUNCTION(kNeg)
    TILESMITH_FUNCTION(kReciprocal)
    TILESMITH_FUNCTION(kRound)
    TILESMITH_FUNCTION(kSelu)
    TILESMITH_FUNCTION(kShrink)
    TILESMITH_FUNCTION(kSign)
    TILESMITH_FUNCTION(kSin)
    TILESMITH_FUNCTION(kSoftplus)
    TILESMITH_FUNCTION(kSoftsign)
    TILESMITH_FUNCTION(kSqrt)
    TILESMITH_FUNCTION(kThresholdedRelu)
#undef TILESMITH_FUNCTION
    default:
      return;
  }
}

// T is a type. NOLINTNEXTLINE(bugprone-macro-parentheses)
#define TILESMITH_FUNCTIONS_OF(T) template void FunctionRun(const T*, T*, int64_t, Function);
TILESMITH_INSTANTIATE_STORED(TILESMITH_FUNCTIONS_OF)
#undef TILESMITH_FUNCTIONS_OF

}  // namespace tilesmith::TILESMITH_ISA
HWY_AFTER_NAMESPACE();
