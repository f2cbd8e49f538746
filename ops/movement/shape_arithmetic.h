// What exporters emit around Reshape. Shapes are static here, so Shape, Size, Constant, ConstantOfShape and
// Range import as ConstantOps; Cast is evaluated by constant folding.
#pragma once

#include "ops/base/op_registry.h"

namespace tilesmith {

// Elements in another type, by ConvertElement (data_type.h). Inputs of any type.
class CastOp : public Op {
 public:
  explicit CastOp(DataType to) : to_(to) {}
  std::string_view Type() const override { return "Cast"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType>) const override { return to_; }
  Tensor Reference(std::span<const Tensor* const> inputs) const override;

 private:
  DataType to_;
};

// Shape, Size, Constant, ConstantOfShape, Range, Cast, CastLike.
std::vector<OpImporter> ShapeArithmeticImporters();

}  // namespace tilesmith
