#include "ops/elementwise/elementwise_loops.h"
#include "ops/kernels/vectors.h"
#include "ops/recurrent/recurrent_loops.h"

HWY_BEFORE_NAMESPACE();
namespace tilesmith::TILESMITH_ISA {
namespace {

using Lanes = FloatVector;

Lanes CallFunction(Lanes x, const Function& function) {
  const FloatTag d;
  HWY_ALIGN float lanes[kFloatLanes];
  hn::Store(x, d, lanes);
  FunctionRun(lanes, lanes, kFloatLanes, function);
  return hn::Load(d, lanes);
}

// Functions that cells seldom have.
HWY_NOINLINE Lanes ApplyOther(Lanes x, const GateFunction& function) {
  const FloatTag d;
  const Lanes alpha = hn::Set(d, function.alpha), beta = hn::Set(d, function.beta);
  switch (function.kind) {
    case GateKind::kRelu:
      return Activate<ActivationKind::kRelu>(d, x, 0, 0);
    case GateKind::kAffine:
      return FusedMulAdd(alpha, x, beta);
    case GateKind::kLeakyRelu:
      return Activate<ActivationKind::kLeakyRelu>(d, x, function.alpha, 0);
    case GateKind::kThresholdedRelu:
      return CallFunction(x, {FunctionKind::kThresholdedRelu, function.alpha});
    case GateKind::kScaledTanh:
      return hn::Mul(alpha, FastTanh(d, hn::Mul(beta, x)));
    case GateKind::kHardSigmoid:
      return Activate<ActivationKind::kHardSigmoid>(d, x, function.alpha, function.beta);
    case GateKind::kElu:
      return CallFunction(x, {FunctionKind::kElu, function.alpha});
    case GateKind::kSoftsign:
      return CallFunction(x, {FunctionKind::kSoftsign});
    case GateKind::kSoftplus:
      return CallFunction(x, {FunctionKind::kSoftplus});
    default:
      return x;
  }
}

// The functions of a cell; `clip` bounds what f and g are applied to, and leaves a NaN.
class Gates {
 public:
  explicit Gates(const CellFunctions& functions) : functions_(functions) {}
  HWY_INLINE Lanes F(Lanes x) const { return Apply(Clipped(x), functions_.f); }
  HWY_INLINE Lanes G(Lanes x) const { return Apply(Clipped(x), functions_.g); }
  HWY_INLINE Lanes H(Lanes x) const { return Apply(x, functions_.h); }

 private:
  HWY_INLINE Lanes Clipped(Lanes x) const {
    const FloatTag d;
    return Smaller(Larger(x, hn::Set(d, -functions_.clip)), hn::Set(d, functions_.clip));
  }
  static HWY_INLINE Lanes Apply(Lanes x, const GateFunction& function) {
    const FloatTag d;
    if (function.kind == GateKind::kSigmoid) return Activate<ActivationKind::kSigmoid>(d, x, 0, 0);
    if (function.kind == GateKind::kTanh) return FastTanh(d, x);
    return ApplyOther(x, function);
  }
  const CellFunctions& functions_;
};

// Memory of `count` units, which may be fewer than a vector has.
template <bool kWhole>
struct Units {
  int64_t at, count;

  HWY_INLINE Lanes operator()(const float* from) const {
    const FloatTag d;
    if constexpr (kWhole) return hn::LoadU(d, from + at);
    return LoadFirst(d, from + at, count, 0.0f);
  }
  HWY_INLINE void Store(Lanes value, float* to) const {
    const FloatTag d;
    if constexpr (kWhole) {
      hn::StoreU(value, d, to + at);
    } else {
      StoreFirst(d, value, to + at, count);
    }
  }
  // What a gate's function is applied to.
  HWY_INLINE Lanes Sum(const CellUnits& u, int64_t gate) const {
    return hn::Add((*this)(u.inputs + gate * u.gate_step), Product(u, gate));
  }
  HWY_INLINE Lanes Product(const CellUnits& u, int64_t gate) const {
    return hn::LoadU(FloatTag(), u.sums + gate * u.sums_step + at);
  }
  HWY_INLINE void StoreState(Lanes value, const CellUnits& u) const {
    Store(value, u.after);
    if (u.output != nullptr) Store(value, u.output);
  }
};

// Calls body(Units) for all of them.
template <typename Body>
HWY_INLINE void ForUnits(const CellUnits& u, const Body& body) {
  int64_t i = 0;
  for (; i + kFloatLanes <= u.units; i += kFloatLanes) body(Units<true>{i, kFloatLanes});
  if (i < u.units) body(Units<false>{i, u.units - i});
}

// before where the gate is 1, fresh where it is 0
HWY_INLINE Lanes Between(Lanes gate, Lanes fresh, Lanes before) {
  return FusedMulAdd(gate, hn::Sub(before, fresh), fresh);
}

}  // namespace

void LstmUnits(const CellUnits& u, const CellFunctions& functions) {
  const Gates gates(functions);
  ForUnits(u, [&](auto at) {
    const Lanes before = at(u.cell);
    Lanes i = at.Sum(u, 0), o = at.Sum(u, 1), f = at.Sum(u, 2);
    if (u.peepholes != nullptr) {
      i = FusedMulAdd(at(u.peepholes), before, i);
      f = FusedMulAdd(at(u.peepholes + 2 * u.gate_step), before, f);
    }
    i = gates.F(i);
    f = functions.input_forget ? hn::Sub(hn::Set(FloatTag(), 1.0f), i) : gates.F(f);
    const Lanes cell = FusedMulAdd(f, before, hn::Mul(i, gates.G(at.Sum(u, 3))));
    at.Store(cell, u.cell);
    if (u.peepholes != nullptr) o = FusedMulAdd(at(u.peepholes + u.gate_step), cell, o);
    at.StoreState(hn::Mul(gates.F(o), gates.H(cell)), u);
  });
}

void GruUnits(const CellUnits& u, const CellFunctions& functions) {
  const Gates gates(functions);
  ForUnits(u, [&](auto at) {
    const Lanes z = gates.F(at.Sum(u, 0)), r = gates.F(at.Sum(u, 1));
    Lanes product = at.Product(u, 2);
    if (u.bias != nullptr) product = hn::Add(product, at(u.bias));
    const Lanes hidden = gates.G(FusedMulAdd(r, product, at(u.inputs + 2 * u.gate_step)));
    at.StoreState(Between(z, hidden, at(u.before)), u);
  });
}

void GruGates(const CellUnits& u, const CellFunctions& functions) {
  const Gates gates(functions);
  ForUnits(u, [&](auto at) {
    at.Store(gates.F(at.Sum(u, 0)), u.cell);
    at.Store(hn::Mul(gates.F(at.Sum(u, 1)), at(u.before)), u.after);
  });
}

void GruHidden(const CellUnits& u, const CellFunctions& functions) {
  const Gates gates(functions);
  ForUnits(u, [&](auto at) { at.StoreState(Between(at(u.cell), gates.G(at.Sum(u, 0)), at(u.before)), u); });
}

void RnnUnits(const CellUnits& u, const CellFunctions& functions) {
  const Gates gates(functions);
  ForUnits(u, [&](auto at) { at.StoreState(gates.F(at.Sum(u, 0)), u); });
}

}  // namespace tilesmith::TILESMITH_ISA
HWY_AFTER_NAMESPACE();
