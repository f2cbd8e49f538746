// Sources: what the user feeds, and what is known at load time.
#pragma once

#include "ops/base/op.h"

namespace tilesmith {

class InputOp : public Op {
 public:
  explicit InputOp(Shape shape, DataType type = DataType::kF32) : shape_(std::move(shape)), type_(type) {}
  std::string_view Type() const override { return "Input"; }
  std::string Signature() const override { return "Input " + ShapeToString(shape_); }
  Shape InferShape(std::span<const Shape>) const override { return shape_; }
  DataType OutputType(std::span<const DataType>) const override { return type_; }
  Tensor Reference(std::span<const Tensor* const> inputs) const override;  // a bug to call

 private:
  Shape shape_;
  DataType type_;
};

class ConstantOp : public Op {
 public:
  explicit ConstantOp(std::shared_ptr<const Tensor> value) : value_(std::move(value)) {}
  const std::shared_ptr<const Tensor>& value() const { return value_; }
  std::string_view Type() const override { return "Constant"; }
  std::string Signature() const override { return "Constant " + ShapeToString(value_->shape()); }
  Shape InferShape(std::span<const Shape>) const override { return value_->shape(); }
  DataType OutputType(std::span<const DataType>) const override { return value_->type(); }
  Tensor Reference(std::span<const Tensor* const>) const override { return *value_; }

 private:
  std::shared_ptr<const Tensor> value_;
};

}  // namespace tilesmith
