#include "ops/nodes/resize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "layouts/base/error.h"
#include "ops/kernels/resize.h"

namespace tilesmith {
namespace {

std::string_view NameOf(ResizeCoordinates coordinates) {
  switch (coordinates) {
    case ResizeCoordinates::kAsymmetric:
      return "asymmetric";
    case ResizeCoordinates::kHalfPixel:
      return "half_pixel";
    case ResizeCoordinates::kPytorchHalfPixel:
      return "pytorch_half_pixel";
    case ResizeCoordinates::kAlignCorners:
      return "align_corners";
    case ResizeCoordinates::kTfHalfPixelForNn:
      return "tf_half_pixel_for_nn";
  }
  return "";
}

std::string_view NameOf(ResizeRounding rounding) {
  switch (rounding) {
    case ResizeRounding::kPreferFloor:
      return "round_prefer_floor";
    case ResizeRounding::kPreferCeil:
      return "round_prefer_ceil";
    case ResizeRounding::kFloor:
      return "floor";
    case ResizeRounding::kCeil:
      return "ceil";
  }
  return "";
}

// Elements of the input and the output along one axis.
struct AxisSizes {
  int64_t in, out;
};

float Position(ResizeCoordinates coordinates, float i, float scale, const AxisSizes& sizes) {
  if (scale == 1) return i;
  switch (coordinates) {
    case ResizeCoordinates::kAsymmetric:
      return i / scale;
    case ResizeCoordinates::kHalfPixel:
      return (i + 0.5f) / scale - 0.5f;
    case ResizeCoordinates::kPytorchHalfPixel:
      return sizes.out > 1 ? (i + 0.5f) / scale - 0.5f : 0;
    case ResizeCoordinates::kAlignCorners:
      return sizes.out > 1 ? i * static_cast<float>(sizes.in - 1) / static_cast<float>(sizes.out - 1) : 0;
    case ResizeCoordinates::kTfHalfPixelForNn:
      return (i + 0.5f) / scale;
  }
  return 0;
}

float Rounded(ResizeRounding rounding, float position) {
  switch (rounding) {
    case ResizeRounding::kPreferFloor:
      return std::ceil(position - 0.5f);
    case ResizeRounding::kPreferCeil:
      return std::floor(position + 0.5f);
    case ResizeRounding::kFloor:
      return std::floor(position);
    case ResizeRounding::kCeil:
      return std::ceil(position);
  }
  return position;
}

bool IsIdentity(const std::vector<ResizeTap>& taps, int64_t input) {
  if (static_cast<int64_t>(taps.size()) != input) return false;
  for (int64_t i = 0; i < input; ++i) {
    if (taps[i].low != i || taps[i].weight != 0) return false;
  }
  return true;
}

// Resizes one axis of a dense tensor.
std::vector<double> AlongAxis(const std::vector<double>& in, Shape& shape, size_t axis,
                              const std::vector<ResizeTap>& taps) {
  const int64_t inner = ElementCount(Shape(shape.begin() + axis + 1, shape.end()));
  const int64_t outer = ElementCount(Shape(shape.begin(), shape.begin() + axis));
  const int64_t size = shape[axis], count = static_cast<int64_t>(taps.size());
  std::vector<double> out(outer * count * inner);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < count; ++i) {
      const double* low = in.data() + (o * size + taps[i].low) * inner;
      const double* high = in.data() + (o * size + taps[i].high) * inner;
      double* to = out.data() + (o * count + i) * inner;
      const double weight = taps[i].weight;
      for (int64_t k = 0; k < inner; ++k) {
        to[k] = weight == 0 ? low[k] : (1 - weight) * low[k] + weight * high[k];
      }
    }
  }
  shape[axis] = count;
  return out;
}

}  // namespace

std::vector<ResizeTap> ResizeTaps(const ResizeParams& params, size_t axis) {
  const AxisSizes sizes{params.input[axis], params.output[axis]};
  const auto last = static_cast<float>(sizes.in - 1);
  std::vector<ResizeTap> taps;
  for (int64_t i = 0; i < sizes.out; ++i) {
    float p = Position(params.coordinates, static_cast<float>(i), params.scales[axis], sizes);
    if (params.mode == ResizeMode::kNearest) p = Rounded(params.rounding, p);
    p = std::clamp(p, 0.0f, last);
    const auto low = static_cast<int64_t>(p);
    taps.push_back({low, std::min(low + 1, sizes.in - 1), p - static_cast<float>(low)});
  }
  return taps;
}

bool ResizeOp::ChangesOnlyImages() const {
  return params_.input.size() == 4 && IsIdentity(ResizeTaps(params_, 0), params_.input[0]) &&
         IsIdentity(ResizeTaps(params_, 1), params_.input[1]);
}

std::string ResizeOp::Signature() const {
  const bool nearest = params_.mode == ResizeMode::kNearest;
  return fmt::format(
      "Resize {} {} by [{}] to {}", nearest ? fmt::format("nearest {}", NameOf(params_.rounding)) : "linear",
      NameOf(params_.coordinates), fmt::join(params_.scales, ","), ShapeToString(params_.output));
}

Shape ResizeOp::InferShape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1 || inputs[0] != params_.input) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("{} takes an input {}, it got {}", Signature(), ShapeToString(params_.input),
                            inputs.empty() ? "none" : ShapeToString(inputs[0])));
  }
  return params_.output;
}

Tensor ResizeOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor& input = *inputs[0];
  Shape shape = input.shape();
  std::vector<double> values(input.floats(), input.floats() + input.size());
  // Shrinking first: nothing in between is larger than the input and the output.
  std::vector<size_t> axes(shape.size());
  std::iota(axes.begin(), axes.end(), size_t{0});
  std::ranges::stable_partition(axes, [&](size_t axis) { return params_.output[axis] < shape[axis]; });
  for (const size_t axis : axes) {
    const std::vector<ResizeTap> taps = ResizeTaps(params_, axis);
    if (!IsIdentity(taps, shape[axis])) values = AlongAxis(values, shape, axis, taps);
  }
  Tensor output(shape);
  std::ranges::transform(values, output.floats(), [](double value) { return static_cast<float>(value); });
  return output;
}

double ResizeOp::Flops(std::span<const Shape>) const {
  return params_.mode == ResizeMode::kNearest ? 0 : 6.0 * ElementCount(params_.output);
}

bool ResizeOp::RunsIn(const Layout& layout, std::span<const Shape>) const {
  return layout.is_nchw() || ChangesOnlyImages();
}

std::unique_ptr<Kernel> ResizeOp::MakeKernel(const KernelRequest& request) const {
  return ChangesOnlyImages() ? MakeResizeKernel(request, params_) : Op::MakeKernel(request);
}

}  // namespace tilesmith
