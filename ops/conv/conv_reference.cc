#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "layouts/base/check.h"
#include "layouts/base/thread_team.h"
#include "ops/conv/conv.h"

namespace tilesmith {
namespace {

using DoubleMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

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
  const DoubleMatrix matrix =
      Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
          weights.floats(), w.oc, taps)
          .cast<double>();
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

}  // namespace tilesmith
