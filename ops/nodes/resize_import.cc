// What ONNX files say of resizing, from Upsample (opsets 7 to 9) to Resize with axes (18).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/nodes/import_util.h"
#include "ops/nodes/resize.h"

namespace tilesmith {
namespace {

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

std::vector<OpImporter> ResizeImporters() { return {{"Resize", BuildResize}, {"Upsample", BuildUpsample}}; }

}  // namespace tilesmith
