// Local response normalization across channels, plain layout, through the reference:
//
//   out[n, c, ...] = x[n, c, ...] / (bias + alpha / size * sum of x[n, i, ...]^2) ^ beta
//                    over c - floor((size-1)/2) <= i <= c + ceil((size-1)/2), inside the tensor
//
// Source: Krizhevsky et al., "ImageNet Classification with Deep Convolutional Neural Networks" (2012), 3.3;
// ONNX's LRN.
#pragma once

#include "ops/base/op_registry.h"

namespace tilesmith {

struct LrnParameters {
  int64_t size = 1;
  double alpha = 1e-4, beta = 0.75, bias = 1;
};

class LrnOp : public Op {
 public:
  explicit LrnOp(const LrnParameters& parameters) : parameters_(parameters) {}
  const LrnParameters& parameters() const { return parameters_; }
  std::string_view Type() const override { return "LRN"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  double Flops(std::span<const Shape> inputs) const override;

 private:
  LrnParameters parameters_;
};

std::vector<OpImporter> LrnImporters();

}  // namespace tilesmith
