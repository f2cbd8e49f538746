// Functions of one and of two floats, by name: what ops, their kernels' inner loops and passes agree on.
#pragma once

namespace tilesmith {

// Activations that convs may fuse have their own names (ops/base/activation.h).
enum class FunctionKind {
  kAbs,
  kAcos,
  kAcosh,
  kAsin,
  kAsinh,
  kAtan,
  kAtanh,
  kCeil,
  kCelu,  // max(x, 0) + min(alpha (e^(x / alpha) - 1), 0)
  kCos,
  kCosh,
  kElu,  // x >= 0 ? x : alpha (e^x - 1)
  kErf,
  kExp,
  kFloor,
  kGelu,      // x (1 + erf(x / sqrt(2))) / 2
  kGeluTanh,  // x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
  kLog,
  kMish,  // x tanh(log(1 + e^x))
  kNeg,
  kReciprocal,
  kRound,   // to the nearest integer, to the even one of two
  kSelu,    // beta (x > 0 ? x : alpha (e^x - 1))
  kShrink,  // x < -beta ? x + alpha : x > beta ? x - alpha : 0
  kSign,    // -1, 0 or 1
  kSin,
  kSinh,
  kSoftplus,  // log(1 + e^x)
  kSoftsign,  // x / (1 + |x|)
  kSqrt,
  kTan,
  kThresholdedRelu,  // x > alpha ? x : 0
};

struct Function {
  FunctionKind kind = FunctionKind::kAbs;
  float alpha = 0, beta = 0;

  bool operator==(const Function&) const = default;
};

enum class BinaryKind {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kPow,
  kMin,    // NaN if either is
  kMax,    // the same
  kPRelu,  // a >= 0 ? a : a * b
};

}  // namespace tilesmith
