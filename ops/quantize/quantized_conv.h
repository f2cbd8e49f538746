// Convolution of bytes: what DequantizeLinear, Conv, an activation that clamps and QuantizeLinear are
// together. There is no importer, passes make it of those.
//
//   sum[n, o, p] = bias[o] + sum_{c, t} (x[n, g(o) * ic/g + c, p + t] - zero_x) * (w[o, c, t] - zero_w[o])
//   y[n, o, p]   = clamp(round(float(sum) * multiplier[o]) + zero_y, low, high)
//   multiplier[o] = scale_x * scale_w[o] / scale_y, or a float beside that which rounds sums as the real
//   number does
//
// The sum is exact, padding adds nothing to it. The rest is computed in float as ONNX Runtime's QLinearConv
// does: each product and quotient is rounded, ties of the final rounding go to even.
//
// With a residual r of the output's shape, the second input, all is rounded once:
//   own[n, o, p] = clamp(fma(float(sum), multiplier[o], c), low, high)
//   y'[n, o, p] = clamp(round(fma(r', f_r, own)) + zero_y', low', high')
//   multiplier[o] = scale_x * scale_w[o] / scale_y'
//   f_r = scale_r / scale_y'      c = -zero_r' * f_r
// where r' and zero_r' are those of bytes without a sign, and low and high are y's limits, in steps of y'.
// Where scale_y < 2 scale_y' that is within a step of what QuantizedBinaryOp makes of the rounded y and r.
//
// Where the output is real it is float(sum) * (scale_x * scale_w[o]).
#pragma once

#include "ops/base/op.h"
#include "ops/base/quantization.h"
#include "ops/conv/conv.h"

namespace tilesmith {

// What turns a type's bytes into those without a sign.
constexpr uint8_t FlipOf(DataType type) { return type == DataType::kI8 ? 0x80 : 0; }

constexpr bool IsDepthwise(const ConvWorkload& w) { return w.g > 1 && w.g == w.ic && w.g == w.oc; }

// Whether what some outputs see, in numbers of 16 bits, is of a size that kernels may copy. Other
// convolutions of bytes only the reference computes.
bool CopiesFit(const ConvWorkload& workload);

// The Add behind a convolution.
struct QuantizedResidual {
  Quantization residual, output;  // of the type of the convolution's own output, per tensor
  StoredRange limits;             // of the sum
};

// Whether a sum may be rounded once, and makes no infinities. `own`: y's.
bool RoundsOnce(const Quantization& own, const QuantizedResidual& sum);

struct QuantizedConvParams {
  Quantization input;                  // u8 or i8, per tensor
  QuantizedTensor weights;             // u8 or i8, OIHW, per tensor or along axis 0
  std::shared_ptr<const Tensor> bias;  // oc i32 of scale_x * scale_w[o], or null when !workload.post.bias
  Quantization output;                 // u8 or i8, per tensor; or f32 without scales, for reals
  StoredRange limits;                  // of y, within the output type's range; without meaning for reals
  std::optional<QuantizedResidual> sum = {};  // exactly when workload.post.sum; not of reals
};

// f_r, c and the limits above.
struct ResidualTerms {
  float factor, offset, low, high;
};
// Precondition: params.sum.
ResidualTerms ResidualTermsOf(const QuantizedConvParams& params);

class QuantizedConvOp : public ConvolutionOp {
 public:
  // Throws Error(kBadModel) when a sum might not fit 32 bits, whatever the input, or a multiplier is not
  // finite. Preconditions: !workload.fused(), no post-ops but bias and sum, params as said there, a sum
  // RoundsOnce; they say what its types are, workload.bytes is not looked at.
  QuantizedConvOp(const ConvWorkload& workload, QuantizedConvParams params);

  // Of a convolution with these weights and bias; form.output may say that reals are stored.
  static OpPtr Of(const ConvWorkload& workload, const StoredWeights& stored, const ByteForm& form);

  // Without weights and bias, for kernels whose parts are known: what it says of itself is all there is.
  QuantizedConvOp(const ConvWorkload& workload, QuantizedConvParams params, std::vector<float> multipliers,
                  double largest_steps)
      : ConvolutionOp(workload),
        params_(std::move(params)),
        multipliers_(std::move(multipliers)),
        largest_steps_(largest_steps) {}
  // The same one, so.
  std::shared_ptr<const QuantizedConvOp> WithoutWeights() const;
  // What the constructor of one without weights takes.
  std::tuple<ConvWorkload, QuantizedConvParams, std::vector<float>, double> Parameters() const;

  const QuantizedConvParams& params() const { return params_; }
  const std::vector<float>& multipliers() const { return multipliers_; }  // oc of them
  // The largest float(sum) * multiplier is at most this, whatever the input and without a residual.
  double largest_steps() const { return largest_steps_; }
  // w - zero_w in the order of the weights, at most 255 in size.
  std::vector<int16_t> CenteredWeights() const;
  // Computes some elements of what Reference gives, by their numbers in it, one after the other.
  Tensor ReferenceAt(std::span<const Tensor* const> inputs, std::span<const int64_t> elements) const;

  std::string_view Type() const override { return "QuantizedConv"; }
  // Scales, zero points and limits are left out, like weights.
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  DataType OutputType(std::span<const DataType> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  double Flops(std::span<const Shape> inputs) const override;
  // Any layout by the default of a template (templates/int8/byte_conv.h), where CopiesFit.
  bool RunsIn(const Layout& layout, std::span<const Shape> inputs) const override;
  bool AnyTypeInAnyLayout() const override { return true; }
  std::optional<Layout> DefaultLayout() const override { return Layout::Nhwc(); }
  bool KernelTakes(std::span<const DataType> inputs) const override;
  bool HasFastKernel() const override { return true; }

 private:
  // The ends of all w - zero_w.
  struct WeightBounds {
    int32_t low = 0, high = 0;
    std::vector<int64_t> sizes = {};  // sums of their sizes, by output channel
  };
  WeightBounds BoundWeights() const;
  ByteTypes TypesWith(const WeightBounds& weights) const;
  // Refuses sums that might not fit 32 bits.
  void BoundSums(const WeightBounds& weights);
  std::vector<int32_t> SumsAt(const Tensor& input, std::span<const int64_t> elements) const;
  const Quantization& output() const { return params_.sum ? params_.sum->output : params_.output; }

  QuantizedConvParams params_;
  std::vector<float> multipliers_;
  double largest_steps_ = 0;
};

}  // namespace tilesmith
