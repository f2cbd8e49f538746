#include "ops/conv/conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "layouts/base/check.h"
#include "layouts/base/thread_team.h"
#include "ops/base/import_util.h"
#include "ops/base/matrix.h"
#include "ops/base/op.h"
#include "ops/base/rounding.h"
#include "ops/conv/conv_depth.h"
#include "ops/elementwise/batch_norm.h"

namespace tilesmith {
namespace {

// sqrt of the sum of the squares of the inputs that each output pixel of one group of one image meets.
std::vector<double> PatchNorms(const ConvWorkload& w, const float* input) {
  const int64_t plane = w.ih * w.iw;
  std::vector<double> squares(plane, 0), norms(w.oh * w.ow, 0);
  for (int64_t c = 0; c < w.ic / w.g; ++c)
    for (int64_t i = 0; i < plane; ++i) squares[i] += double{input[c * plane + i]} * input[c * plane + i];
  for (int64_t i = 0; i < w.kh; ++i) {
    for (int64_t y = 0; y < w.oh; ++y) {
      const int64_t row = y * w.sh - w.ph + i * (w.dh + 1);
      if (row < 0 || row >= w.ih) continue;
      for (int64_t j = 0; j < w.kw; ++j) {
        for (int64_t x = 0; x < w.ow; ++x) {
          const int64_t column = x * w.sw - w.pw + j * (w.dw + 1);
          if (column >= 0 && column < w.iw) norms[y * w.ow + x] += squares[row * w.iw + column];
        }
      }
    }
  }
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

std::shared_ptr<const Tensor> FloatConstant(const NodeSpec& spec, size_t index, std::string_view role) {
  if (!spec.inputs[index].constant) {
    Refuse(spec, fmt::format("its {} must be constant, they depend on the network's inputs", role));
  }
  if (spec.inputs[index].constant->type() != DataType::kF32) {
    Refuse(spec, fmt::format("its {} must be floats", role));
  }
  return spec.inputs[index].constant;
}

// No workload has a size of 0: where input or weights have one, every output is the bias or 0.
BuiltOp BuildSumsOfNothing(const NodeSpec& spec, const ConvWorkload& w, const Tensor* bias) {
  const Shape shape = {w.mb, w.oc, w.oh, w.ow};
  NeedFoldable(spec, shape);
  auto sums = std::make_shared<Tensor>(shape);
  const int64_t pixels = w.oh * w.ow;
  for (int64_t i = 0; bias != nullptr && i < sums->size(); ++i) {
    sums->floats()[i] = bias->floats()[i / pixels % w.oc];
  }
  return {std::make_shared<ConstantOp>(std::move(sums)), {}};
}

BuiltOp BuildConv(const NodeSpec& spec) {
  NeedInputs(spec, 2, 3);
  if (spec.inputs[0].shape.size() != 4) return BuildConvOfOtherRank(spec);
  const Shape& input = ShapeOfRank(spec, 0, 4);
  const std::shared_ptr<const Tensor> weights = FloatConstant(spec, 1, "weights");
  const Shape& kernel = ShapeOfRank(spec, 1, 4);
  const Window window =
      ImportWindow(spec, spec.Ints("kernel_shape", {kernel[2], kernel[3]}), input[2], input[3]);
  if (window.kh != kernel[2] || window.kw != kernel[3]) {
    Refuse(spec, fmt::format("kernel_shape {}x{} contradicts the weights {}", window.kh, window.kw,
                             ShapeToString(kernel)));
  }
  ConvWorkload w;
  w.mb = input[0], w.ic = input[1], w.ih = input[2], w.iw = input[3];
  w.g = spec.Int("group", 1), w.oc = kernel[0];
  w.kh = window.kh, w.kw = window.kw, w.sh = window.sh, w.sw = window.sw;
  w.ph = window.top, w.pw = window.left, w.dh = window.dh - 1, w.dw = window.dw - 1;
  if (w.g < 1 || w.ic % w.g != 0 || w.ic / w.g != kernel[1]) {
    Refuse(spec, fmt::format("{} input channels in {} groups do not fit the weights {}", w.ic, w.g,
                             ShapeToString(kernel)));
  }
  const auto output = [&spec](int64_t padded, int64_t extent, int64_t stride) {
    if (padded < extent) Refuse(spec, fmt::format("the kernel extends over {} of {} inputs", extent, padded));
    return (padded - extent) / stride + 1;
  };
  w.oh = output(w.ih + window.top + window.bottom, (w.kh - 1) * window.dh + 1, w.sh);
  w.ow = output(w.iw + window.left + window.right, (w.kw - 1) * window.dw + 1, w.sw);
  std::shared_ptr<const Tensor> bias;
  StoredWeights stored = {spec.inputs[1].stored, nullptr};
  if (spec.HasInput(2)) {
    stored.bias = spec.inputs[2].stored;
    bias = FloatConstant(spec, 2, "bias values");
    if (bias->size() != w.oc) {
      Refuse(spec, fmt::format("the bias has {} values for {} channels", bias->size(), w.oc));
    }
    w.post.bias = true;
  }
  if (weights->size() == 0 || ElementCount(input) == 0) return BuildSumsOfNothing(spec, w, bias.get());
  try {
    return BuiltWithInputs(std::make_shared<ConvOp>(w, weights, bias, std::move(stored)), 1);
  } catch (const Error& error) {
    Refuse(spec, error.what());
  }
}

// A sum that starts from zero stays the same one when products of padding's zeros are added to it, as some
// kernels do and others do not; one that starts from minus zero may not.
std::shared_ptr<const Tensor> WithoutNegativeZeros(std::shared_ptr<const Tensor> bias) {
  if (!bias) return bias;
  const std::span values(bias->floats(), static_cast<size_t>(bias->size()));
  if (std::ranges::none_of(values, [](float value) { return value == 0 && std::signbit(value); }))
    return bias;
  auto copy = std::make_shared<Tensor>(bias->shape());
  std::ranges::transform(values, copy->floats(), [](float value) { return value + 0.0F; });
  return copy;
}

}  // namespace

ConvOp::ConvOp(const ConvWorkload& workload, std::shared_ptr<const Tensor> weights,
               std::shared_ptr<const Tensor> bias, StoredWeights stored)
    : ConvolutionOp(workload),
      weights_(std::move(weights)),
      bias_(WithoutNegativeZeros(std::move(bias))),
      stored_(std::move(stored)) {
  ValidateWorkload(workload_);
  TILESMITH_CHECK(!workload_.fused() && !workload_.bytes, "{}", WorkloadToString(workload_));
  TILESMITH_CHECK(weights_ && weights_->size() == ElementCount(workload_.weights_shape()));
  TILESMITH_CHECK((bias_ != nullptr) == workload_.post.bias && (!bias_ || bias_->size() == workload_.oc));
}

Shape ConvOp::InferShape(std::span<const Shape> inputs) const {
  const size_t count = workload_.post.sum ? 2 : 1;
  if (inputs.size() != count || inputs[0] != workload_.input_shape() ||
      (count == 2 && inputs[1] != workload_.output_shape())) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("{} takes an input {}{}, it got {} input(s), the first {}", Signature(),
                            ShapeToString(workload_.input_shape()),
                            count == 2 ? " and a residual " + ShapeToString(workload_.output_shape()) : "",
                            inputs.size(), inputs.empty() ? "" : ShapeToString(inputs[0])));
  }
  return workload_.output_shape();
}

Tensor ConvOp::Reference(std::span<const Tensor* const> inputs) const {
  return ReferenceConv(workload_, *inputs[0], *weights_, bias_.get(),
                       workload_.post.sum ? inputs[1] : nullptr);
}

double ConvOp::Flops(std::span<const Shape>) const { return workload_.flops(); }

// Conv: constant weights and bias.
std::vector<OpImporter> ConvImporters() { return {{"Conv", BuildConv}}; }

namespace {

using DoubleMatrix = RowMatrix<double>;

constexpr int64_t kPixelChunk = 192;
constexpr int64_t kChannelChunk = 64;

// One piece of the output: some pixels of some channels of one group of one image.
struct Piece {
  int64_t image, group, first_channel, channels, first_pixel, pixels;
};

// columns(c * kh * kw + i * kw + j, p) = the input that tap (c, i, j) of output pixel p reads, 0 outside.
void GatherColumns(const ConvWorkload& w, const float* input, const Piece& piece, DoubleMatrix& columns) {
  const int64_t icg = w.ic / w.g;
  columns.resize(icg * w.kh * w.kw, piece.pixels);
  const float* image = input + (piece.image * w.ic + piece.group * icg) * w.ih * w.iw;
  int64_t row = 0;
  for (int64_t c = 0; c < icg; ++c) {
    for (int64_t i = 0; i < w.kh; ++i) {
      for (int64_t j = 0; j < w.kw; ++j, ++row) {
        double* out = &columns(row, 0);
        for (int64_t p = 0; p < piece.pixels; ++p) {
          const int64_t y = (piece.first_pixel + p) / w.ow * w.sh - w.ph + i * (w.dh + 1);
          const int64_t x = (piece.first_pixel + p) % w.ow * w.sw - w.pw + j * (w.dw + 1);
          const bool inside = y >= 0 && y < w.ih && x >= 0 && x < w.iw;
          out[p] = inside ? image[(c * w.ih + y) * w.iw + x] : 0.0;
        }
      }
    }
  }
}

void CheckTensors(const ConvWorkload& w, const ConvTensors& t) {
  TILESMITH_CHECK(t.input->layout().is_nchw() && t.input->shape() == w.input_shape());
  TILESMITH_CHECK(t.weights->size() == ElementCount(w.weights_shape()));
  TILESMITH_CHECK((t.bias != nullptr) == w.post.bias && (t.residual != nullptr) == w.post.sum);
  TILESMITH_CHECK(!t.residual || t.residual->shape() == w.output_shape());
  TILESMITH_CHECK((t.scale != nullptr) == w.pre.scale_shift && (t.shift != nullptr) == w.pre.scale_shift);
  TILESMITH_CHECK(!t.scale || (t.scale->size() == w.ic && t.shift->size() == w.ic));
  TILESMITH_CHECK((t.before_weights != nullptr) == !w.before.empty());
}

ConvTensors BeforeTensors(const ConvTensors& tensors) {
  return {.input = tensors.input, .weights = tensors.before_weights, .bias = tensors.before_bias};
}

// One element after the input ops, as the main conv reads it.
ConvSample ApplyInputOps(const InputOps& ops, const ConvTensors& tensors, int64_t channel, float in) {
  double value = in, magnitude = std::abs(value);
  if (ops.scale_shift) {
    const double shift = tensors.shift->floats()[channel];
    value = value * tensors.scale->floats()[channel] + shift;
    magnitude = std::abs(value - shift) + std::abs(shift);
  }
  value = ops.activation.Apply(static_cast<float>(value));
  return {value, std::max(magnitude, std::abs(value))};
}

// Where the terms of element (row, column) of product `n` are: how far those of each side lie apart.
struct ProductTerms {
  const float *left, *right;
  int64_t left_step, right_step;
};

ProductTerms TermsOf(const ConvWorkload& w, const ConvTensors& tensors, const Dims4& at) {
  const auto [left_transposed, right_transposed] = *w.product;
  const float* left = tensors.input->floats() + at.n * w.oh * w.ic;
  const float* right = tensors.weights->floats() + at.n * w.ic * w.oc;
  return {left + at.h * (left_transposed ? 1 : w.ic), right + at.w * (right_transposed ? w.ic : 1),
          left_transposed ? w.oh : 1, right_transposed ? 1 : w.oc};
}

ConvSample ProductAt(const ConvWorkload& w, const ConvTensors& tensors, const Dims4& at) {
  const ProductTerms terms = TermsOf(w, tensors, at);
  ConvSample sample;
  for (int64_t k = 0; k < w.ic; ++k) {
    const double term =
        static_cast<double>(terms.left[k * terms.left_step]) * terms.right[k * terms.right_step];
    sample.value += term;
    sample.magnitude += std::abs(term);
  }
  return sample;
}

Tensor ReferenceProduct(const ConvWorkload& w, const ConvTensors& tensors) {
  Tensor output(w.output_shape());
  float* out = output.floats();
  for (int64_t n = 0; n < w.mb; ++n) {
    for (int64_t i = 0; i < w.oh; ++i) {
      for (int64_t j = 0; j < w.oc; ++j)
        *out++ = static_cast<float>(ProductAt(w, tensors, {n, 0, i, j}).value);
    }
  }
  return output;
}

// The tensor the main conv reads.
Tensor MainInput(const ConvWorkload& w, const ConvTensors& tensors) {
  if (!w.before.empty()) return ReferenceConv(w.before[0], BeforeTensors(tensors));
  Tensor main(w.main_input_shape());
  const int64_t plane = w.ih * w.iw;
  for (int64_t i = 0; i < main.size(); ++i) {
    const float in = tensors.input->floats()[i];
    main.floats()[i] = static_cast<float>(ApplyInputOps(w.pre, tensors, i / plane % w.ic, in).value);
  }
  return main;
}

// One element of it, with the magnitude of what it was computed from.
ConvSample MainInputAt(const ConvWorkload& w, const ConvTensors& tensors, const Dims4& at) {
  if (!w.before.empty()) {
    const ConvSample sample = ReferenceConvAt(w.before[0], BeforeTensors(tensors), at);
    return {sample.value, std::max(sample.magnitude, std::abs(sample.value))};
  }
  const float in = tensors.input->floats()[((at.n * w.ic + at.c) * w.ih + at.h) * w.iw + at.w];
  return ApplyInputOps(w.pre, tensors, at.c, in);
}

}  // namespace

Tensor ReferenceConv(const ConvWorkload& w, const ConvTensors& tensors) {
  CheckTensors(w, tensors);
  if (!w.fused()) {
    return ReferenceConv(w, *tensors.input, *tensors.weights, tensors.bias, tensors.residual);
  }
  return ReferenceConv(w.main_conv(), MainInput(w, tensors), *tensors.weights, tensors.bias,
                       tensors.residual);
}

Tensor ReferenceConv(const ConvWorkload& w, const Tensor& input, const Tensor& weights, const Tensor* bias,
                     const Tensor* residual) {
  TILESMITH_CHECK(!w.fused(), "{}", WorkloadToString(w));
  const ConvTensors tensors{.input = &input, .weights = &weights, .bias = bias, .residual = residual};
  CheckTensors(w, tensors);
  if (w.product) return ReferenceProduct(w, tensors);
  const int64_t ocg = w.oc / w.g, taps = w.ic / w.g * w.kh * w.kw, pixels = w.oh * w.ow;
  const DoubleMatrix matrix = FloatMap(weights.floats(), w.oc, taps).cast<double>();
  std::vector<Piece> pieces;
  for (int64_t n = 0; n < w.mb; ++n) {
    for (int64_t g = 0; g < w.g; ++g) {
      for (int64_t p = 0; p < pixels; p += kPixelChunk) {
        for (int64_t o = 0; o < ocg; o += kChannelChunk) {
          pieces.push_back(
              {n, g, g * ocg + o, std::min(kChannelChunk, ocg - o), p, std::min(kPixelChunk, pixels - p)});
        }
      }
    }
  }
  Tensor output(w.output_shape());
  ForEachIndex(std::ssize(pieces), [&](int64_t index) {
    DoubleMatrix columns, sums;
    const Piece& piece = pieces[static_cast<size_t>(index)];
    GatherColumns(w, input.floats(), piece, columns);
    sums.noalias() = matrix.middleRows(piece.first_channel, piece.channels) * columns;
    for (int64_t o = 0; o < piece.channels; ++o) {
      const int64_t channel = piece.first_channel + o;
      const int64_t at = (piece.image * w.oc + channel) * pixels + piece.first_pixel;
      for (int64_t p = 0; p < piece.pixels; ++p) {
        double value = sums(o, p);
        if (bias) value += bias->floats()[channel];
        if (residual) value += residual->floats()[at + p];
        output.floats()[at + p] = w.post.activation.Apply(static_cast<float>(value));
      }
    }
  });
  return output;
}

ConvSample ReferenceConvAt(const ConvWorkload& w, const ConvTensors& tensors, const Dims4& at) {
  CheckTensors(w, tensors);
  if (w.product) return ProductAt(w, tensors, at);
  const int64_t icg = w.ic / w.g, group = at.c / (w.oc / w.g);
  ConvSample sample;
  const auto add = [&sample](double term, double magnitude) {
    sample.value += term;
    sample.magnitude += magnitude;
  };
  for (int64_t c = 0; c < icg; ++c) {
    for (int64_t i = 0; i < w.kh; ++i) {
      for (int64_t j = 0; j < w.kw; ++j) {
        const int64_t y = at.h * w.sh - w.ph + i * (w.dh + 1);
        const int64_t x = at.w * w.sw - w.pw + j * (w.dw + 1);
        if (y < 0 || y >= w.ih || x < 0 || x >= w.iw) continue;
        const ConvSample in = MainInputAt(w, tensors, {at.n, group * icg + c, y, x});
        const double weight = tensors.weights->floats()[((at.c * icg + c) * w.kh + i) * w.kw + j];
        add(in.value * weight, in.magnitude * std::abs(weight));
      }
    }
  }
  const auto add_given = [&add](double term) { add(term, std::abs(term)); };
  if (tensors.bias) add_given(tensors.bias->floats()[at.c]);
  if (tensors.residual) {
    add_given(tensors.residual->floats()[((at.n * w.oc + at.c) * w.oh + at.h) * w.ow + at.w]);
  }
  sample.value = w.post.activation.Apply(static_cast<float>(sample.value));
  return sample;
}

ConvSample ReferenceConvAt(const ConvWorkload& w, const Tensor& input, const Tensor& weights,
                           const Tensor* bias, const Tensor* residual, const Dims4& at) {
  const ConvTensors tensors{.input = &input, .weights = &weights, .bias = bias, .residual = residual};
  return ReferenceConvAt(w, tensors, at);
}

ConvTensors ConvData::tensors() const {
  const auto pointer = [](const std::optional<Tensor>& tensor) { return tensor ? &*tensor : nullptr; };
  return {.input = &input,
          .weights = &weights,
          .bias = pointer(bias),
          .residual = pointer(residual),
          .scale = pointer(scale),
          .shift = pointer(shift),
          .before_weights = pointer(before_weights),
          .before_bias = pointer(before_bias)};
}

ConvData MakeConvData(const ConvWorkload& w, const std::function<void(Tensor&)>& fill) {
  const auto make = [&](const Shape& shape) {
    Tensor tensor(shape);
    fill(tensor);
    return tensor;
  };
  ConvData data;
  data.input = make(w.input_shape());
  data.weights = make(w.weights_shape());
  if (w.post.bias) data.bias = make({w.oc});
  if (w.post.sum) data.residual = make(w.output_shape());
  if (w.pre.scale_shift) {
    data.scale = make({w.ic});
    data.shift = make({w.ic});
  }
  for (const ConvWorkload& first : w.before) {
    data.before_weights = make(first.weights_shape());
    if (first.post.bias) data.before_bias = make({first.oc});
  }
  return data;
}

Tensor ConvOp::Magnitudes(const Tensor& input, const Tensor* residual) const {
  const ConvWorkload& w = workload_;
  Tensor magnitudes(w.output_shape());
  const int64_t icg = w.ic / w.g, ocg = w.oc / w.g, taps = icg * w.kh * w.kw, pixels = w.oh * w.ow;
  const float* weights = weights_->floats();
  ForEachIndex(w.mb * w.g, [&](int64_t image_group) {
    const int64_t n = image_group / w.g, g = image_group % w.g;
    const std::vector<double> norms = PatchNorms(w, input.floats() + (n * w.ic + g * icg) * w.ih * w.iw);
    for (int64_t o = g * ocg; o < (g + 1) * ocg; ++o) {
      double squares = 0;
      for (int64_t k = 0; k < taps; ++k) squares += double{weights[o * taps + k]} * weights[o * taps + k];
      const double norm = std::sqrt(squares), bias = bias_ ? std::abs(bias_->floats()[o]) : 0;
      const int64_t first = (n * w.oc + o) * pixels;
      for (int64_t p = 0; p < pixels; ++p) {
        const double added = bias + (residual ? std::abs(residual->floats()[first + p]) : 0);
        magnitudes.floats()[first + p] = static_cast<float>(norm * norms[p] + added);
      }
    }
  });
  return magnitudes;
}

OpPtr ConvOp::WithActivation(const Activation& activation) const {
  ConvWorkload workload = workload_;
  if (workload.post.activation.kind != ActivationKind::kNone) return nullptr;
  workload.post.activation = activation;
  return std::make_shared<ConvOp>(workload, weights_, bias_);
}

OpPtr ConvOp::WithResidual() const {
  ConvWorkload workload = workload_;
  if (workload.post.sum || workload.post.activation.kind != ActivationKind::kNone) return nullptr;
  workload.post.sum = true;
  return std::make_shared<ConvOp>(workload, weights_, bias_);
}

OpPtr ConvOp::WithScaleShift(const ScaleShiftOp& op, const Shape&) const {
  ConvWorkload workload = workload_;
  if (workload.post.sum || workload.post.activation.kind != ActivationKind::kNone) return nullptr;
  workload.post.bias = true;
  workload.post.activation = op.activation();
  return std::make_shared<ConvOp>(workload, op.ScaledWeights(weights_, weights_->size() / workload.oc),
                                  op.ScaledBias(bias_.get()));
}

double ConvOp::Terms() const {
  return static_cast<double>(workload_.ic / workload_.g * workload_.kh * workload_.kw + 2);
}

Tensor ConvOp::RoundingBound(const OpRun& run) const {
  const Tensor* residual = workload_.post.sum ? run.inputs[1] : nullptr;
  return BoundsOf(Magnitudes(Absolute(*run.inputs[0]), residual), SumRoundings(Terms()),
                  workload_.post.activation);
}

}  // namespace tilesmith
