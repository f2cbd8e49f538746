// What exporters emit around Reshape. Shapes are static here, so Shape, Size, Constant, ConstantOfShape and
// Range import as ConstantOps; Cast is evaluated by constant folding.
#pragma once

#include "ops/base/op_registry.h"

namespace tilesmith {

class CastOp : public Op {
 public:
  CastOp(DataType to, bool to_bool) : to_(to), to_bool_(to_bool) {}  // bool: 0 or 1 as integers
  std::string_view Type() const override { return "Cast"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType>) const override { return to_; }
  Tensor Reference(std::span<const Tensor* const> inputs) const override;

 private:
  DataType to_;
  bool to_bool_;
};

// Shape, Size, Constant, ConstantOfShape, Range, Cast.
std::vector<OpImporter> ShapeArithmeticImporters();

}  // namespace tilesmith
