// What exporters emit around Reshape. Shapes are static here, so Shape, Size, Constant, ConstantOfShape and
// Range import as ConstantOps; Cast, Equal and Where of constants are evaluated by constant folding.
#pragma once

#include "layouts/base/error.h"
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

// out = a == b, bools, broadcast. Inputs of one type, whichever it is.
class EqualOp : public Op {
 public:
  std::string_view Type() const override { return "Equal"; }
  std::string Signature() const override { return "Equal"; }
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override {
    SharedType(inputs);
    return DataType::kBool;
  }
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
};

// out = condition ? a : b, broadcast. Inputs: condition (bools), and a and b of one type.
class WhereOp : public Op {
 public:
  std::string_view Type() const override { return "Where"; }
  std::string Signature() const override { return "Where"; }
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override {
    if (inputs[0] != DataType::kBool) throw Error(ErrorCode::kBadModel, "its condition must be boolean");
    return SharedType(inputs.subspan(1));
  }
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
};

// Shape, Size, Constant, ConstantOfShape, Range, Cast, Equal, Where.
std::vector<OpImporter> ShapeArithmeticImporters();

}  // namespace tilesmith
