// Normalizations: elements less their mean, divided by their spread, in groups, then scaled and shifted.
//
//   out = (in - mean) / spread * scale + shift                                        plain layout, any rank
//
// The axes from some one on are normalized together (LayerNormalization; RMSNormalization, without a mean),
// or all but images and channels (InstanceNormalization), or also some channels together
// (GroupNormalization), or any set of axes (MeanVarianceNormalization), or a single one, without a mean and
// divided by its norm, which may have a least value (LpNormalization).
#pragma once

#include <memory>
#include <vector>

#include "ops/base/op.h"

namespace tilesmith {

enum class Spread {
  kVariance,    // sqrt(variance + epsilon)
  kDeviation,   // sqrt(variance) + epsilon
  kMeanSquare,  // sqrt(mean of squares + epsilon), the mean left as it is
  kL1,          // max(sum of |x|, epsilon), likewise; a group of zeros stays one
  kL2,          // max(square root of the sum of x^2, epsilon), likewise
};

struct Normalization {
  Spread spread = Spread::kVariance;
  float epsilon = 0;
  // Axes of the input that are normalized together, ascending; with groups, axes of {N, groups, C / groups,
  // ...}.
  std::vector<int64_t> axes;
  int64_t groups = 0;  // 0: none
  // None, or one value for each channel, or, where by_element, one for each element that is normalized
  // together.
  std::vector<float> scale, shift;
  bool by_element = false;
};

// 1 / spread, of `count` elements whose squares, or for kL1 absolute values, less their mean where there is
// one, sum up to `sum`.
double NormalizationFactor(const Normalization& normalization, double sum, double count);

class NormalizationOp : public Op {
 public:
  // `type`: ONNX's name. Preconditions: scale and shift have the same size; by_element only where the axes
  // are the last ones.
  NormalizationOp(std::string type, Normalization normalization)
      : type_(std::move(type)), normalization_(std::move(normalization)) {}
  const Normalization& normalization() const { return normalization_; }

  std::string_view Type() const override { return type_; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override;
  double Flops(std::span<const Shape> inputs) const override { return 8.0 * ElementCount(inputs[0]); }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool HasFastKernel() const override { return true; }
  bool InPlaceOk(int) const override { return true; }
  auto Parameters() const { return std::tie(type_, normalization_); }

 private:
  std::string type_;
  Normalization normalization_;
};

// Whether what is normalized together is adjacent in memory, and within an image.
bool HasNormalizationKernel(const Shape& shape, const Normalization& normalization);

// Local response normalization across channels, plain layout, through the reference:
//
//   out[n, c, ...] = x[n, c, ...] / (bias + alpha / size * sum of x[n, i, ...]^2) ^ beta
//                    over c - floor((size-1)/2) <= i <= c + ceil((size-1)/2), inside the tensor
//
// Source: Krizhevsky et al., "ImageNet Classification with Deep Convolutional Neural Networks" (2012), 3.3;
// ONNX's LRN.

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
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  double Flops(std::span<const Shape> inputs) const override;
  auto Parameters() const { return std::tie(parameters_); }

 private:
  LrnParameters parameters_;
};

}  // namespace tilesmith
