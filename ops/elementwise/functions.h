// Functions of one element that are rare in CNNs: plain layout, all but e^x through the reference.
//
//   out = exp(x), log(x), sqrt(x), erf(x), |x|, -x, 1/x, floor(x), ceil(x)
//   out = a ^ b, min(a, b), max(a, b)      with broadcasting
#pragma once

#include "ops/base/op_registry.h"

namespace tilesmith {

struct UnaryFunction {
  std::string_view name;  // ONNX's
  double (*apply)(double);
  std::unique_ptr<Kernel> (*kernel)(const KernelRequest&) = nullptr;  // plain; null: through the reference
};

class FunctionOp : public Op {
 public:
  explicit FunctionOp(const UnaryFunction& function) : function_(function) {}
  std::string_view Type() const override { return function_.name; }
  std::string Signature() const override { return std::string(function_.name); }
  Shape InferShape(std::span<const Shape> inputs) const override { return inputs[0]; }
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool HasFastKernel() const override { return function_.kernel != nullptr; }

 private:
  UnaryFunction function_;
};

struct BinaryFunction {
  std::string_view name;
  double (*apply)(double, double);
};

// A function of two inputs, or of more taken from left to right.
class BinaryFunctionOp : public Op {
 public:
  explicit BinaryFunctionOp(const BinaryFunction& function) : function_(function) {}
  std::string_view Type() const override { return function_.name; }
  std::string Signature() const override { return std::string(function_.name); }
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;

 private:
  BinaryFunction function_;
};

// Exp, Log, Sqrt, Erf, Abs, Neg, Reciprocal, Floor, Ceil, Pow, Min, Max. A Pow by a constant 1, 2 or 1/2 is
// an Identity, a Mul or a Sqrt; Min and Max with a constant scalar are a Clip.
std::vector<OpImporter> FunctionImporters();

}  // namespace tilesmith
