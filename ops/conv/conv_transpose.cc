#include "ops/conv/conv_transpose.h"

#include <fmt/format.h>

#include <algorithm>

#include "layouts/base/check.h"
#include "ops/base/import_util.h"
#include "ops/base/saved_op.h"
#include "ops/conv/conv_depth.h"
#include "ops/elementwise/batch_norm.h"

namespace tilesmith {
namespace {

// What ONNX's output_shape and output_padding say along one axis; output 0 where they leave it open.
struct AxisRequest {
  int64_t input, kernel, stride, dilation, begin, end;
  int64_t output, output_padding;
};

// Padding and output size along one axis, by the formulas of ONNX's operator page.
struct AxisExtent {
  int64_t begin, output;
};

AxisExtent Resolve(const AxisRequest& axis, const std::string& auto_pad) {
  const int64_t full = (Checked(axis.stride) * (axis.input - 1) + axis.output_padding +
                        (Checked(axis.kernel) - 1) * axis.dilation + 1)
                           .value();
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (axis.output == 0 && !same) return {axis.begin, full - axis.begin - axis.end};
  const int64_t output = axis.output != 0 ? axis.output : (Checked(axis.input) * axis.stride).value();
  const int64_t total = std::max<int64_t>(full - output, 0);
  return {auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2, output};
}

std::vector<int64_t> NonNegativePair(const NodeSpec& spec, std::string_view name) {
  std::vector<int64_t> pair = spec.Ints(name, {0, 0});
  if (pair.size() != 2) Refuse(spec, fmt::format("{} has {} values, 2-D needs 2", name, pair.size()));
  if (std::min(pair[0], pair[1]) < 0) {
    Refuse(spec, fmt::format("{} is [{}, {}], negative ones are not supported", name, pair[0], pair[1]));
  }
  return pair;
}

ConvTransposeParams ImportParams(const NodeSpec& spec, const Shape& weights) {
  ConvTransposeParams params;
  params.input = ShapeOfRank(spec, 0, 4);
  const int64_t ih = params.input[2], iw = params.input[3];
  const Window w = ImportWindow(spec, spec.Ints("kernel_shape", {weights[2], weights[3]}), ih, iw);
  if (w.kh != weights[2] || w.kw != weights[3]) {
    Refuse(spec,
           fmt::format("kernel_shape {}x{} contradicts the weights {}", w.kh, w.kw, ShapeToString(weights)));
  }
  const std::vector<int64_t> size = NonNegativePair(spec, "output_shape");
  const std::vector<int64_t> padding = NonNegativePair(spec, "output_padding");
  const std::string auto_pad = spec.String("auto_pad", "NOTSET");
  const AxisExtent rows = Resolve({ih, w.kh, w.sh, w.dh, w.top, w.bottom, size[0], padding[0]}, auto_pad);
  const AxisExtent columns = Resolve({iw, w.kw, w.sw, w.dw, w.left, w.right, size[1], padding[1]}, auto_pad);
  if (rows.output < 1 || columns.output < 1) {
    Refuse(spec, fmt::format("its pads leave {}x{} of the output", rows.output, columns.output));
  }
  params.groups = spec.Int("group", 1);
  params.sh = w.sh, params.sw = w.sw, params.dh = w.dh, params.dw = w.dw;
  params.top = rows.begin, params.left = columns.begin;
  params.oh = rows.output, params.ow = columns.output;
  return params;
}

BuiltOp BuildConvTranspose(const NodeSpec& spec) {
  NeedInputs(spec, 2, 3);
  if (spec.inputs[0].shape.size() != 4) return BuildConvTransposeOfOtherRank(spec);
  const Shape& shape = ShapeOfRank(spec, 1, 4);
  if (!spec.inputs[1].constant || spec.inputs[1].type != DataType::kF32) {
    Refuse(spec, "its weights must be constant floats");
  }
  const ConvTransposeParams params = ImportParams(spec, shape);
  const int64_t channels = params.input[1];
  if (params.groups < 1 || channels != shape[0] || channels % params.groups != 0) {
    Refuse(spec, fmt::format("{} input channels in {} groups do not fit the weights {}", channels,
                             params.groups, ShapeToString(shape)));
  }
  std::shared_ptr<const Tensor> bias;
  if (spec.HasInput(2)) {
    bias = spec.inputs[2].constant;
    if (!bias || bias->type() != DataType::kF32) Refuse(spec, "its bias values must be constant floats");
    if (bias->size() != params.groups * shape[1]) {
      Refuse(spec,
             fmt::format("the bias has {} values for {} channels", bias->size(), params.groups * shape[1]));
    }
  }
  return BuiltWithInputs(std::make_shared<ConvTransposeOp>(params, spec.inputs[1].constant, bias), 1);
}

// The input positions [first, last) along one axis that tap `offset` (of the kernel, in output positions)
// carries into an output of `output` positions cut off at `begin`.
struct Reach {
  int64_t first, last;
};
Reach ReachOf(int64_t input, int64_t stride, int64_t offset, int64_t output) {
  const auto up = [stride](int64_t value) { return value <= 0 ? 0 : (value + stride - 1) / stride; };
  return {up(-offset), std::min(input, up(output - offset))};
}

// Adds one input channel, through its taps for one output channel, to the output plane.
void AddChannel(const ConvTransposeParams& p, const float* in, const float* taps, const Shape& kernel,
                double* out) {
  const int64_t ih = p.input[2], iw = p.input[3];
  for (int64_t i = 0; i < kernel[2]; ++i) {
    const int64_t row = i * p.dh - p.top;
    const Reach rows = ReachOf(ih, p.sh, row, p.oh);
    for (int64_t j = 0; j < kernel[3]; ++j) {
      const double weight = taps[i * kernel[3] + j];
      const int64_t column = j * p.dw - p.left;
      const Reach columns = ReachOf(iw, p.sw, column, p.ow);
      for (int64_t u = rows.first; u < rows.last; ++u) {
        const int64_t to = (u * p.sh + row) * p.ow + column;
        for (int64_t v = columns.first; v < columns.last; ++v) out[to + v * p.sw] += weight * in[u * iw + v];
      }
    }
  }
}

}  // namespace

ConvTransposeOp::ConvTransposeOp(const ConvTransposeParams& params, std::shared_ptr<const Tensor> weights,
                                 std::shared_ptr<const Tensor> bias, Activation activation)
    : params_(params), weights_(std::move(weights)), bias_(std::move(bias)), activation_(activation) {
  TILESMITH_CHECK(params_.input.size() == 4 && weights_ && weights_->shape().size() == 4);
  TILESMITH_CHECK(weights_->shape()[0] == params_.input[1] && params_.input[1] % params_.groups == 0);
  TILESMITH_CHECK(!bias_ || bias_->size() == output_channels());
}

std::string ConvTransposeOp::Signature() const {
  const ConvTransposeParams& p = params_;
  const std::string activation = ActivationToString(activation_);
  return fmt::format("ConvTranspose weights {} g{} sh{}sw{}dh{}dw{} pads {},{} to {}x{}{}{}",
                     ShapeToString(weights_->shape()), p.groups, p.sh, p.sw, p.dh, p.dw, p.top, p.left, p.oh,
                     p.ow, bias_ ? "+bias" : "", activation.empty() ? "" : "+" + activation);
}

Shape ConvTransposeOp::InferShape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1 || inputs[0] != params_.input) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("{} takes an input {}, it got {}", Signature(), ShapeToString(params_.input),
                            inputs.empty() ? "none" : ShapeToString(inputs[0])));
  }
  return {params_.input[0], output_channels(), params_.oh, params_.ow};
}

Tensor ConvTransposeOp::Reference(std::span<const Tensor* const> inputs) const {
  const Shape shapes[] = {inputs[0]->shape()};
  Tensor output(InferShape(shapes));
  const Shape& kernel = weights_->shape();
  const int64_t taps = kernel[2] * kernel[3], group_in = params_.input[1] / params_.groups;
  const int64_t in_plane = params_.input[2] * params_.input[3], out_plane = params_.oh * params_.ow;
  std::vector<double> sums(out_plane);
  for (int64_t plane = 0; plane < params_.input[0] * output_channels(); ++plane) {
    const int64_t image = plane / output_channels(), channel = plane % output_channels();
    const int64_t group = channel / kernel[1], o = channel % kernel[1];
    std::ranges::fill(sums, bias_ ? bias_->floats()[channel] : 0.0);
    for (int64_t c = group * group_in; c < (group + 1) * group_in; ++c) {
      AddChannel(params_, inputs[0]->floats() + (image * params_.input[1] + c) * in_plane,
                 weights_->floats() + (c * kernel[1] + o) * taps, kernel, sums.data());
    }
    for (int64_t i = 0; i < out_plane; ++i) {
      output.floats()[plane * out_plane + i] = activation_.Apply(static_cast<float>(sums[i]));
    }
  }
  return output;
}

double ConvTransposeOp::Flops(std::span<const Shape> inputs) const {
  const Shape& kernel = weights_->shape();
  return 2.0 * ElementCount(inputs[0]) * kernel[1] * kernel[2] * kernel[3];
}

// ConvTranspose: 2-D, constant weights and bias.
std::vector<OpImporter> ConvTransposeImporters() { return {{"ConvTranspose", BuildConvTranspose}}; }

OpPtr ConvTransposeOp::WithActivation(const Activation& activation) const {
  if (activation_.kind != ActivationKind::kNone) return nullptr;
  return std::make_shared<ConvTransposeOp>(params_, weights_, bias_, activation);
}

OpPtr ConvTransposeOp::WithScaleShift(const ScaleShiftOp& op, const Shape&) const {
  const Shape& shape = weights_->shape();  // input channels by output channels
  if (params_.groups != 1 || activation_.kind != ActivationKind::kNone) return nullptr;
  return std::make_shared<ConvTransposeOp>(params_, op.ScaledWeights(weights_, shape[2] * shape[3]),
                                           op.ScaledBias(bias_.get()), op.activation());
}

std::vector<SavedOp> ConvTransposeOps() { return {Saved<ConvTransposeOp>("ConvTranspose")}; }

}  // namespace tilesmith
