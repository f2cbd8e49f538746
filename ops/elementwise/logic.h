// Comparisons, logic and arithmetic of bits, element by element, with broadcasting. Plain, through the
// reference.
//
//   out = a == b, a > b, a >= b, a < b, a <= b         bools
//   out = a and b, a or b, a xor b, not a              bools
//   out = a mod b, a & b, a | b, a ^ b, ~a, a << b, a >> b, min(a, b), max(a, b)    of the inputs' type
//   out = condition ? a : b
//   out = x is NaN, x is infinite                      bools
#pragma once

#include "ops/base/op_registry.h"

namespace tilesmith {

enum class PairKind {
  kEqual,
  kGreater,
  kGreaterOrEqual,
  kLess,
  kLessOrEqual,
  kAnd,
  kOr,
  kXor,
  kMod,   // with the sign of b
  kFmod,  // with the sign of a
  kBitAnd,
  kBitOr,
  kBitXor,
  kShiftLeft,
  kShiftRight,
};

// Two inputs of one type. Integers wrap around; mod 0 throws Error(kBadModel), shifts by as many bits as
// there are give 0.
class PairOp : public Op {
 public:
  explicit PairOp(PairKind kind) : kind_(kind) {}
  std::string_view Type() const override;
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool KernelTakes(std::span<const DataType> inputs) const override;
  bool HasFastKernel() const override { return true; }
  auto Parameters() const { return std::tie(kind_); }

 private:
  PairKind kind_;
};

enum class TestKind { kNot, kBitNot, kIsNan, kIsInfinite };

// Which infinities kIsInfinite finds.
struct Infinities {
  bool negative = true, positive = true;
};

// One input.
class TestOp : public Op {
 public:
  explicit TestOp(TestKind kind, Infinities infinities = {}) : kind_(kind), infinities_(infinities) {}
  std::string_view Type() const override;
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override { return inputs[0]; }
  DataType OutputType(std::span<const DataType> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool KernelTakes(std::span<const DataType>) const override { return true; }
  bool HasFastKernel() const override { return true; }
  auto Parameters() const { return std::tie(kind_, infinities_); }

 private:
  TestKind kind_;
  Infinities infinities_;
};

// out = condition ? a : b, broadcast. Inputs: condition (bools), a and b of one type.
class WhereOp : public Op {
 public:
  std::string_view Type() const override { return "Where"; }
  std::string Signature() const override { return "Where"; }
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool KernelTakes(std::span<const DataType>) const override { return true; }
  bool HasFastKernel() const override { return true; }
  auto Parameters() const { return std::tie(); }
};

// min(max(x, low), high) of integers, or with bounds that are not constant; either may be absent.
BuiltOp BuildClipByNodes(const NodeSpec& spec);

}  // namespace tilesmith
