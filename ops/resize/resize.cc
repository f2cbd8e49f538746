#include "ops/resize/resize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "layouts/base/error.h"
#include "ops/base/import_util.h"
#include "ops/base/rounding.h"
#include "ops/base/saved_op.h"
#include "ops/kernels/block_kernel.h"
#include "ops/movement/view.h"

namespace tilesmith {
namespace {

// A weighted sum of input elements; the extrapolation value where there is none.
struct ResizeSum {
  std::vector<std::pair<int64_t, double>> terms;
};

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
    case ResizeCoordinates::kHalfPixelSymmetric:
      return "half_pixel_symmetric";
    case ResizeCoordinates::kCropAndResize:
      return "tf_crop_and_resize";
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

float Position(const ResizeParams& params, size_t axis, float i) {
  const AxisSizes sizes{params.input[axis], params.output[axis]};
  const float scale = params.scales[axis];
  const auto last = static_cast<float>(sizes.in - 1);
  if (scale == 1 && params.coordinates != ResizeCoordinates::kCropAndResize) return i;
  switch (params.coordinates) {
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
    case ResizeCoordinates::kHalfPixelSymmetric: {
      const float whole = static_cast<float>(sizes.out) / scale;
      return (static_cast<float>(sizes.in) - whole) / 2 + (i + 0.5f) / scale - 0.5f;
    }
    case ResizeCoordinates::kCropAndResize: {
      const float begin = params.begin[axis], end = params.end[axis];
      if (sizes.out <= 1) return 0.5f * (begin + end) * last;
      return begin * last + i * (end - begin) * last / static_cast<float>(sizes.out - 1);
    }
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

// Of an axis that keeps its size.
bool IsIdentity(const std::vector<ResizeTap>& taps) {
  for (size_t i = 0; i < taps.size(); ++i)
    if (taps[i].low != static_cast<int64_t>(i) || taps[i].weight != 0) return false;
  return true;
}

// Whether ResizeTaps tells all.
bool HasTaps(const ResizeParams& params) {
  return params.coordinates != ResizeCoordinates::kCropAndResize &&
         (params.mode == ResizeMode::kNearest || (params.mode == ResizeMode::kLinear && !params.antialias));
}

bool KeepsAxis(const ResizeParams& params, size_t axis) {
  if (params.input[axis] != params.output[axis]) return false;
  if (HasTaps(params)) return IsIdentity(ResizeTaps(params, axis));
  const bool crops = params.coordinates == ResizeCoordinates::kCropAndResize &&
                     (params.begin[axis] != 0 || params.end[axis] != 1);
  return !crops && params.scales[axis] == 1;
}

// What an element `distance` away from a position counts there, before all are made to sum up to 1.
double Weight(const ResizeParams& params, double distance) {
  const double x = std::abs(distance), a = params.cubic;
  if (params.mode == ResizeMode::kLinear) return std::max(0.0, 1 - x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

ResizeSum SumAround(const ResizeParams& params, size_t axis, double position) {
  const int64_t last = params.input[axis] - 1;
  const double scale = params.antialias ? std::min(1.0, static_cast<double>(params.scales[axis])) : 1;
  const double reach = (params.mode == ResizeMode::kLinear ? 1 : 2) / scale;
  ResizeSum sum;
  double whole = 0;
  const auto end = static_cast<int64_t>(std::floor(position + reach));
  for (auto i = static_cast<int64_t>(std::ceil(position - reach)); i <= end; ++i) {
    if (params.exclude_outside && (i < 0 || i > last)) continue;
    const double weight = Weight(params, scale * (static_cast<double>(i) - position));
    if (weight == 0) continue;
    sum.terms.emplace_back(std::clamp<int64_t>(i, 0, last), weight);
    whole += weight;
  }
  for (auto& [index, weight] : sum.terms) weight /= whole;
  return sum;
}

// One for each output position along `axis`, whatever the parameters.
std::vector<ResizeSum> ResizeSums(const ResizeParams& params, size_t axis) {
  std::vector<ResizeSum> sums;
  if (HasTaps(params)) {
    for (const ResizeTap& tap : ResizeTaps(params, axis)) {
      ResizeSum& sum = sums.emplace_back();
      sum.terms.emplace_back(tap.low, 1.0 - tap.weight);
      if (tap.weight != 0) sum.terms.emplace_back(tap.high, tap.weight);
    }
    return sums;
  }
  const auto last = static_cast<float>(params.input[axis] - 1);
  for (int64_t i = 0; i < params.output[axis]; ++i) {
    const float p = Position(params, axis, static_cast<float>(i));
    if (params.coordinates == ResizeCoordinates::kCropAndResize && !(p >= 0 && p <= last)) {
      sums.emplace_back();
    } else if (params.mode == ResizeMode::kNearest) {
      const float nearest = std::clamp(Rounded(params.rounding, p), 0.0f, last);
      sums.push_back({{{static_cast<int64_t>(nearest), 1.0}}});
    } else {
      sums.push_back(SumAround(params, axis, p));
    }
  }
  return sums;
}

// Resizes one axis of a dense tensor.
std::vector<double> AlongAxis(const std::vector<double>& in, Shape& shape, size_t axis,
                              const ResizeParams& params) {
  const std::vector<ResizeSum> sums = ResizeSums(params, axis);
  const int64_t inner = ElementCount(Shape(shape.begin() + axis + 1, shape.end()));
  const int64_t outer = ElementCount(Shape(shape.begin(), shape.begin() + axis));
  const int64_t size = shape[axis], count = std::ssize(sums);
  std::vector<double> out(outer * count * inner);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < count; ++i) {
      double* to = out.data() + (o * count + i) * inner;
      if (sums[i].terms.empty()) std::fill_n(to, inner, params.extrapolation);
      for (const auto& [index, weight] : sums[i].terms) {
        const double* from = in.data() + (o * size + index) * inner;
        for (int64_t k = 0; k < inner; ++k) to[k] += weight * from[k];
      }
    }
  }
  shape[axis] = count;
  return out;
}

// What ONNX files say of resizing, from Upsample (opsets 7 to 9) to Resize with axes (18).

template <typename T>
struct NamedChoice {
  std::string_view name;
  T value;
};

constexpr NamedChoice<ResizeMode> kModes[] = {{"nearest", ResizeMode::kNearest},
                                              {"linear", ResizeMode::kLinear},
                                              {"cubic", ResizeMode::kCubic},
                                              {"bilinear", ResizeMode::kLinear}};  // before opset 7
constexpr NamedChoice<ResizeCoordinates> kCoordinates[] = {
    {"half_pixel", ResizeCoordinates::kHalfPixel},
    {"asymmetric", ResizeCoordinates::kAsymmetric},
    {"align_corners", ResizeCoordinates::kAlignCorners},
    {"pytorch_half_pixel", ResizeCoordinates::kPytorchHalfPixel},
    {"tf_half_pixel_for_nn", ResizeCoordinates::kTfHalfPixelForNn},
    {"half_pixel_symmetric", ResizeCoordinates::kHalfPixelSymmetric},
    {"tf_crop_and_resize", ResizeCoordinates::kCropAndResize}};
constexpr NamedChoice<ResizeRounding> kRoundings[] = {{"round_prefer_floor", ResizeRounding::kPreferFloor},
                                                      {"round_prefer_ceil", ResizeRounding::kPreferCeil},
                                                      {"floor", ResizeRounding::kFloor},
                                                      {"ceil", ResizeRounding::kCeil}};

// The attribute as one of the values; refuses others. Absent, it is the first.
template <typename T, size_t kCount>
T OneOf(const NodeSpec& spec, std::string_view attribute, const NamedChoice<T> (&values)[kCount]) {
  const std::string text = spec.String(attribute, values[0].name);
  std::string known;
  for (const NamedChoice<T>& value : values) {
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

// The values that the node's axes have, in their order.
std::vector<int64_t> OnAxes(const NodeSpec& spec, const std::vector<int64_t>& all) {
  if (!spec.Has("axes")) return all;
  std::vector<int64_t> values;
  for (const int64_t axis : spec.Ints("axes", {})) values.push_back(all[NormalAxis(spec, axis, all.size())]);
  return values;
}

// Where a scale gives no whole size, ONNX's own examples align the corner of the fraction, ONNX Runtime that
// of the last element.
void RefuseUnclearCorners(const NodeSpec& spec, const ResizeParams& params) {
  for (size_t axis = 0; axis < params.input.size(); ++axis) {
    const float size = static_cast<float>(params.input[axis]) * params.scales[axis];
    if (size - std::floor(size) <= 1e-4f) continue;
    Refuse(spec,
           fmt::format("align_corners with scale {} of {} elements, which is no whole size: ONNX and ONNX "
                       "Runtime align different corners",
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
    if (!(scale > 0) || !(size >= 1 || params.input[axis] == 0) || size > 0x1p30f) {
      Refuse(spec, fmt::format("scale {} makes {} elements of {}", scale, size, params.input[axis]));
    }
    params.output[axis] = static_cast<int64_t>(size);
  }
}

void SetSizes(const NodeSpec& spec, std::vector<int64_t> given, ResizeParams& params) {
  const std::string policy = spec.String("keep_aspect_ratio_policy", "stretch");
  if (policy == "not_larger" || policy == "not_smaller") {
    const std::vector<int64_t> own = OnAxes(spec, params.input);
    if (own.size() != given.size() || given.empty()) Refuse(spec, "its sizes and axes do not fit");
    std::vector<float> scales(given.size());
    for (size_t i = 0; i < given.size(); ++i)
      scales[i] = static_cast<float>(given[i]) / static_cast<float>(std::max<int64_t>(own[i], 1));
    const auto [least, most] = std::ranges::minmax(scales);
    const float scale = policy == "not_larger" ? least : most;
    if (!(scale > 0) || !(scale <= 0x1p30f)) Refuse(spec, fmt::format("a scale of {}", scale));
    params.scales = OnAllAxes(spec, std::vector<float>(given.size(), scale),
                              std::vector<float>(params.input.size(), 1.0f));
    for (size_t i = 0; i < given.size(); ++i) {
      const double size = std::floor(static_cast<double>(scale) * static_cast<double>(own[i]) + 0.5);
      given[i] = size <= 0x1p40 ? static_cast<int64_t>(size) : kMaxTensorElements + 1;
    }
  } else if (policy != "stretch") {
    Refuse(spec, fmt::format("keep_aspect_ratio_policy \"{}\" is unknown (known: stretch, not_larger, "
                             "not_smaller)",
                             policy));
  }
  params.output = OnAllAxes(spec, given, params.input);
  const bool has_scales = !params.scales.empty();
  for (size_t axis = 0; axis < params.input.size(); ++axis) {
    const int64_t from = params.input[axis], to = params.output[axis];
    if (from == 0 ? to != 0 : to < 1) Refuse(spec, fmt::format("it makes {} elements of {}", to, from));
    if (has_scales) continue;
    params.scales.push_back(from == 0 ? 1 : static_cast<float>(to) / static_cast<float>(from));
  }
}

// The crop's begin and end along every axis.
void SetCrop(const NodeSpec& spec, ResizeParams& params) {
  if (!spec.HasInput(1)) Refuse(spec, "tf_crop_and_resize needs the input roi");
  NeedKnown(spec, 1, "roi");
  const std::vector<float> roi = ConstantFloats(spec, 1);
  const auto half = static_cast<std::ptrdiff_t>(roi.size() / 2);
  const size_t rank = params.input.size();
  params.begin =
      OnAllAxes(spec, std::vector<float>(roi.begin(), roi.begin() + half), std::vector<float>(rank, 0.0f));
  params.end =
      OnAllAxes(spec, std::vector<float>(roi.begin() + half, roi.end()), std::vector<float>(rank, 1.0f));
  params.extrapolation = spec.Float("extrapolation_value", 0);
}

BuiltOp Built(const NodeSpec& spec, ResizeParams params) {
  if (spec.inputs[0].type != DataType::kF32) Refuse(spec, "only float inputs are supported");
  CheckShape(params.output, spec.limits);
  bool keeps_all = true;
  for (size_t axis = 0; axis < params.input.size(); ++axis) keeps_all = keeps_all && KeepsAxis(params, axis);
  if (keeps_all) return BuiltWithInputs(std::make_shared<ViewOp>("Identity"), 1);
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
  ResizeParams params;
  params.antialias = spec.Int("antialias", 0) != 0;
  params.exclude_outside = spec.Int("exclude_outside", 0) != 0;
  params.cubic = spec.Float("cubic_coeff_a", -0.75f);
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
  if (params.coordinates == ResizeCoordinates::kCropAndResize) SetCrop(spec, params);
  return Built(spec, std::move(params));
}

}  // namespace

std::vector<ResizeTap> ResizeTaps(const ResizeParams& params, size_t axis) {
  const int64_t end = params.input[axis] - 1;
  std::vector<ResizeTap> taps;
  for (int64_t i = 0; i < params.output[axis]; ++i) {
    float p = Position(params, axis, static_cast<float>(i));
    if (params.mode == ResizeMode::kNearest) p = Rounded(params.rounding, p);
    p = std::clamp(p, 0.0f, static_cast<float>(end));
    const auto low = static_cast<int64_t>(p);
    taps.push_back({low, std::min(low + 1, end), p - static_cast<float>(low)});
  }
  return taps;
}

bool ResizeOp::ChangesOnlyImages() const {
  return params_.input.size() == 4 && HasTaps(params_) && KeepsAxis(params_, 0) && KeepsAxis(params_, 1);
}

std::string ResizeOp::Signature() const {
  const ResizeParams& p = params_;
  const std::string mode = p.mode == ResizeMode::kNearest  ? fmt::format("nearest {}", NameOf(p.rounding))
                           : p.mode == ResizeMode::kLinear ? "linear"
                                                           : fmt::format("cubic {}", p.cubic);
  const std::string crop = p.begin.empty() ? ""
                                           : fmt::format(" of [{}] to [{}] else {}", fmt::join(p.begin, ","),
                                                         fmt::join(p.end, ","), p.extrapolation);
  return fmt::format("Resize {}{}{} {}{} by [{}] to {}", mode, p.antialias ? " antialiased" : "",
                     p.exclude_outside ? " inside" : "", NameOf(p.coordinates), crop,
                     fmt::join(p.scales, ","), ShapeToString(p.output));
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
    if (!KeepsAxis(params_, axis)) values = AlongAxis(values, shape, axis, params_);
  }
  Tensor output(shape);
  std::ranges::transform(values, output.floats(), [](double value) { return static_cast<float>(value); });
  return output;
}

std::optional<RowWindows> ResizeOp::RowsReadOf(size_t, std::span<const Shape>, const Shape&) const {
  if (!ChangesOnlyImages() || params_.input[2] == 0 || params_.output[2] == 0) return std::nullopt;
  RowWindow window{.stride = params_.input[2], .rows_each = params_.output[2]};
  int64_t above = 0, below = 0;
  const std::vector<ResizeTap> taps = ResizeTaps(params_, 2);
  for (int64_t row = 0; row < params_.output[2]; ++row) {
    const int64_t start = row * window.stride / window.rows_each;
    above = std::max(above, start - taps[row].low);
    below = std::max(below, taps[row].high - start);
  }
  window.before = above;
  window.taps = above + below + 1;
  return RowWindows{window};
}

double ResizeOp::Flops(std::span<const Shape>) const {
  return params_.mode == ResizeMode::kNearest ? 0 : 6.0 * ElementCount(params_.output);
}

// Resize of opsets 10 to 24, Upsample.
std::vector<OpImporter> ResizeImporters() { return {{"Resize", BuildResize}, {"Upsample", BuildUpsample}}; }

namespace {

// How often each input column is repeated, where all the output is that; else 0.
int64_t RepeatOf(const std::vector<ResizeTap>& columns, int64_t input_width) {
  const auto width = static_cast<int64_t>(columns.size());
  const int64_t repeat = width / input_width;
  if (repeat == 0 || width % input_width != 0) return 0;
  for (int64_t x = 0; x < width; ++x) {
    if (columns[x].low != x / repeat || columns[x].weight != 0) return 0;
  }
  return repeat;
}

// It works in any layout, of f32 or bf16, where only H and W change; a task is one output row of one block.
template <typename T>
class ResizeKernel : public Kernel {
 public:
  ResizeKernel(const KernelRequest& request, const ResizeParams& params)
      : in_(BlockDimsOf(request.inputs[0], request.layout)),
        out_(BlockDimsOf(request.output, request.layout)),
        rows_(ResizeTaps(params, 2)),
        columns_(ResizeTaps(params, 3)),
        repeat_(RepeatOf(columns_, in_.width)),
        nearest_(params.mode == ResizeMode::kNearest),
        loop_(nearest_ ? TILESMITH_DISPATCH_STORED(T, request.cpu, NearestRow<T>)
                       : TILESMITH_DISPATCH_STORED(T, request.cpu, LinearRow<T>)) {}

  int64_t Tasks(int stage) const override { return Grid(stage).tasks(); }
  TaskGrid Grid(int) const override { return GridOfPieces(out_, out_.width); }
  bool ShiftsBlocks() const override { return true; }

  // Padding lanes hold zeros, and so does what lies between them.
  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const int64_t in_row = in_.width * in_.lanes, out_row = out_.width * out_.lanes;
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t y = task % out_.height, plane = task / out_.height;
      const int64_t image = plane / out_.blocks, block = plane % out_.blocks;
      constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
      T* output = args.output.image<T>(image) +
                  block * (out_.block_floats() + args.output.block_shift / kBytes) + y * out_row;
      if (nearest_ && task > range.begin && y > 0 && rows_[y].low == rows_[y - 1].low) {
        std::memcpy(output, output - out_row, out_row * sizeof(T));
        continue;
      }
      const T* input =
          args.inputs[0].image<T>(image) + block * (in_.block_floats() + args.inputs[0].block_shift / kBytes);
      loop_({input + rows_[y].low * in_row, input + rows_[y].high * in_row, rows_[y].weight, output,
             out_.lanes, out_.width, columns_.data(), repeat_});
    }
  }

 private:
  const BlockDims in_, out_;
  const std::vector<ResizeTap> rows_, columns_;
  const int64_t repeat_;
  const bool nearest_;
  void (*const loop_)(const ResizeRow<T>&);
};

}  // namespace

std::unique_ptr<Kernel> ResizeOp::MakeKernel(const KernelRequest& request) const {
  if (!ChangesOnlyImages()) return Op::MakeKernel(request);
  if (request.layout.type() == DataType::kBf16)
    return std::make_unique<ResizeKernel<uint16_t>>(request, params_);
  return std::make_unique<ResizeKernel<float>>(request, params_);
}

// An element is a weighted mean of up to 16 pixels, some weights being below zero.
Tensor ResizeOp::RoundingBound(const OpRun& run) const {
  constexpr double kOfTaps = 32;
  Tensor magnitudes(run.output.shape());
  std::fill_n(magnitudes.floats(), magnitudes.size(), LargestFinite(*run.inputs[0]));
  return BoundsOf(magnitudes, kOfTaps);
}

std::vector<SavedOp> ResizeOps() { return {Saved<ResizeOp>("Resize")}; }

}  // namespace tilesmith
