#include "ops/resize/resize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "layouts/base/error.h"
#include "ops/base/import_util.h"

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

// What ONNX files say of resizing, from Upsample (opsets 7 to 9) to Resize with axes (18).

template <typename T>
struct Named {
  std::string_view name;
  T value;
};

constexpr Named<ResizeMode> kModes[] = {{"nearest", ResizeMode::kNearest},
                                        {"linear", ResizeMode::kLinear},
                                        {"bilinear", ResizeMode::kLinear}};  // before opset 7
constexpr Named<ResizeCoordinates> kCoordinates[] = {
    {"half_pixel", ResizeCoordinates::kHalfPixel},
    {"asymmetric", ResizeCoordinates::kAsymmetric},
    {"align_corners", ResizeCoordinates::kAlignCorners},
    {"pytorch_half_pixel", ResizeCoordinates::kPytorchHalfPixel},
    {"tf_half_pixel_for_nn", ResizeCoordinates::kTfHalfPixelForNn}};
constexpr Named<ResizeRounding> kRoundings[] = {{"round_prefer_floor", ResizeRounding::kPreferFloor},
                                                {"round_prefer_ceil", ResizeRounding::kPreferCeil},
                                                {"floor", ResizeRounding::kFloor},
                                                {"ceil", ResizeRounding::kCeil}};

// The attribute as one of the values; refuses others. Absent, it is the first.
template <typename T, size_t kCount>
T OneOf(const NodeSpec& spec, std::string_view attribute, const Named<T> (&values)[kCount]) {
  const std::string text = spec.String(attribute, values[0].name);
  std::string known;
  for (const Named<T>& value : values) {
    if (value.name == text) return value.value;
    known += (known.empty() ? "" : ", ") + std::string(value.name);
  }
  Refuse(spec, fmt::format("{} \"{}\" is not supported (known: {})", attribute, text, known));
}

// Values given for some axes, spread over all of them.
template <typename T>
std::vector<T> OnAllAxes(const NodeSpec& spec, const std::vector<T>& given, std::vector<T> otherwise) {
  std::vector<int64_t> axes(otherwise.size());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  axes = spec.Ints("axes", axes);
  if (axes.size() != given.size()) {
    Refuse(spec, fmt::format("{} sizes or scales are given for {} axes", given.size(), axes.size()));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    otherwise[NormalAxis(spec, axes[i], otherwise.size())] = given[i];
  }
  return otherwise;
}

// Where a scale gives no whole size, ONNX's own examples align the corner of the fraction, ONNX Runtime that
// of the last element.
void RefuseUnclearCorners(const NodeSpec& spec, const ResizeParams& params) {
  for (size_t axis = 0; axis < params.input.size(); ++axis) {
    const float size = static_cast<float>(params.input[axis]) * params.scales[axis];
    if (size - std::floor(size) <= 1e-4f) continue;
    Refuse(spec,
           fmt::format("align_corners with scale {} of {} elements, which is no whole size, is not supported",
                       params.scales[axis], params.input[axis]));
  }
}

void SetScales(const NodeSpec& spec, const std::vector<float>& given, ResizeParams& params) {
  if (params.input.empty()) Refuse(spec, "its input is a scalar");
  params.scales = OnAllAxes(spec, given, std::vector<float>(params.input.size(), 1.0f));
  params.output = params.input;
  for (size_t axis = 0; axis < params.input.size(); ++axis) {
    const float scale = params.scales[axis];
    const float size = static_cast<float>(params.input[axis]) * scale;
    if (!(scale > 0) || !(size >= 1) || size > 0x1p30f) {
      Refuse(spec, fmt::format("scale {} makes {} elements of {}", scale, size, params.input[axis]));
    }
    params.output[axis] = static_cast<int64_t>(size);
  }
}

void SetSizes(const NodeSpec& spec, const std::vector<int64_t>& given, ResizeParams& params) {
  params.output = OnAllAxes(spec, given, params.input);
  for (size_t axis = 0; axis < params.input.size(); ++axis) {
    if (params.output[axis] < 1 || params.input[axis] < 1) {
      Refuse(spec, fmt::format("it makes {} elements of {}", params.output[axis], params.input[axis]));
    }
    params.scales.push_back(static_cast<float>(params.output[axis]) / static_cast<float>(params.input[axis]));
  }
}

BuiltOp Built(const NodeSpec& spec, ResizeParams params) {
  if (spec.inputs[0].type != DataType::kF32) Refuse(spec, "only float inputs are supported");
  return BuiltWithInputs(std::make_shared<ResizeOp>(std::move(params)), 1);
}

// Upsample, and Resize of opset 10: scales only, no choice of coordinates. Shrinking, ONNX's own examples and
// ONNX Runtime take the element above.
BuiltOp BuildOld(const NodeSpec& spec, const std::vector<float>& scales) {
  ResizeParams params;
  params.mode = OneOf(spec, "mode", kModes);
  params.input = spec.inputs[0].shape;
  SetScales(spec, scales, params);
  const auto [least, most] = std::ranges::minmax(params.scales);
  if (params.mode == ResizeMode::kNearest && least < 1 && most > 1) {
    Refuse(spec, "it enlarges one axis and shrinks another, which opset 10 leaves open");
  }
  params.rounding = least < 1 ? ResizeRounding::kCeil : ResizeRounding::kFloor;
  return Built(spec, std::move(params));
}

BuiltOp BuildUpsample(const NodeSpec& spec) {
  NeedInputs(spec, 1, 2);
  if (spec.HasInput(1)) return BuildOld(spec, ConstantFloats(spec, 1));
  if (!spec.Has("scales")) Refuse(spec, "it states no scales");
  return BuildOld(spec, spec.Floats("scales", {}));
}

// Inputs: data, roi, scales, sizes; an empty tensor is as good as none.
BuiltOp BuildResize(const NodeSpec& spec) {
  NeedInputs(spec, 1, 4);
  if (spec.opset < 11) return BuildOld(spec, ConstantFloats(spec, 1));
  const std::string policy = spec.String("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch") {
    Refuse(spec, fmt::format("keep_aspect_ratio_policy \"{}\" is not supported (known: stretch)", policy));
  }
  if (spec.Int("antialias", 0) != 0) Refuse(spec, "antialias 1 is not supported");
  ResizeParams params;
  params.mode = OneOf(spec, "mode", kModes);
  params.coordinates = OneOf(spec, "coordinate_transformation_mode", kCoordinates);
  params.rounding = OneOf(spec, "nearest_mode", kRoundings);
  params.input = spec.inputs[0].shape;
  const bool has_scales = spec.HasInput(2) && spec.Constant(2).size() > 0;
  const bool has_sizes = spec.HasInput(3) && spec.Constant(3).size() > 0;
  if (has_scales == has_sizes) Refuse(spec, "it must state either scales or sizes");
  if (has_scales) {
    SetScales(spec, ConstantFloats(spec, 2), params);
    if (params.coordinates == ResizeCoordinates::kAlignCorners) RefuseUnclearCorners(spec, params);
  } else {
    SetSizes(spec, ConstantInts(spec, 3), params);
  }
  return Built(spec, std::move(params));
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

std::vector<OpImporter> ResizeImporters() { return {{"Resize", BuildResize}, {"Upsample", BuildUpsample}}; }

}  // namespace tilesmith
