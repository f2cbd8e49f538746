#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "layouts/base/check.h"
#include "ops/nodes/conv.h"

namespace tilesmith {
namespace {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr int64_t kPixelChunk = 192;
constexpr int64_t kChannelChunk = 64;

// One piece of the output: some pixels of some channels of one group of one image.
struct Piece {
  int64_t image, group, first_channel, channels, first_pixel, pixels;
};

// columns(c * kh * kw + i * kw + j, p) = the input that tap (c, i, j) of output pixel p reads, 0 outside.
void GatherColumns(const ConvWorkload& w, const float* input, const Piece& piece, RowMatrix& columns) {
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

void CheckTensors(const ConvWorkload& w, const Tensor& input, const Tensor& weights, const Tensor* bias,
                  const Tensor* residual) {
  TILESMITH_CHECK(input.layout().is_nchw() && input.shape() == w.input_shape());
  TILESMITH_CHECK(weights.shape() == w.weights_shape());
  TILESMITH_CHECK((bias != nullptr) == w.post.bias && (residual != nullptr) == w.post.sum);
  TILESMITH_CHECK(!residual || residual->shape() == w.output_shape());
}

}  // namespace

Tensor ReferenceConv(const ConvWorkload& w, const Tensor& input, const Tensor& weights, const Tensor* bias,
                     const Tensor* residual) {
  CheckTensors(w, input, weights, bias, residual);
  const int64_t ocg = w.oc / w.g, taps = w.ic / w.g * w.kh * w.kw, pixels = w.oh * w.ow;
  const RowMatrix matrix =
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
#pragma omp parallel
  {
    RowMatrix columns, sums;
#pragma omp for schedule(dynamic)
    for (size_t index = 0; index < pieces.size(); ++index) {
      const Piece& piece = pieces[index];
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
    }
  }
  return output;
}

ConvSample ReferenceConvAt(const ConvWorkload& w, const Tensor& input, const Tensor& weights,
                           const Tensor* bias, const Tensor* residual, const Dims4& at) {
  CheckTensors(w, input, weights, bias, residual);
  const int64_t icg = w.ic / w.g, group = at.c / (w.oc / w.g);
  ConvSample sample;
  const auto add = [&sample](double term) {
    sample.value += term;
    sample.magnitude += std::abs(term);
  };
  for (int64_t c = 0; c < icg; ++c) {
    for (int64_t i = 0; i < w.kh; ++i) {
      for (int64_t j = 0; j < w.kw; ++j) {
        const int64_t y = at.h * w.sh - w.ph + i * (w.dh + 1);
        const int64_t x = at.w * w.sw - w.pw + j * (w.dw + 1);
        if (y < 0 || y >= w.ih || x < 0 || x >= w.iw) continue;
        const float in = input.floats()[((at.n * w.ic + group * icg + c) * w.ih + y) * w.iw + x];
        add(static_cast<double>(in) * weights.floats()[((at.c * icg + c) * w.kh + i) * w.kw + j]);
      }
    }
  }
  if (bias) add(bias->floats()[at.c]);
  if (residual) add(residual->floats()[((at.n * w.oc + at.c) * w.oh + at.h) * w.ow + at.w]);
  sample.value = w.post.activation.Apply(static_cast<float>(sample.value));
  return sample;
}

}  // namespace tilesmith
