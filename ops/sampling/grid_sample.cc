#include "ops/sampling/grid_sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "layouts/base/sizes.h"
#include "ops/base/elements.h"
#include "ops/base/import_util.h"
#include "ops/base/node_writer.h"
#include "ops/base/saved_op.h"
#include "ops/sampling/grid_sample_loops.h"

namespace tilesmith {
namespace {

constexpr double kKeysAlpha = -0.75;
constexpr int kMaxAxes = 3, kMaxTaps = 4;

template <typename Kind, size_t kCount>
Kind KindNamed(const NodeSpec& spec, std::string_view attribute, std::string_view fallback,
               const std::array<std::pair<std::string_view, Kind>, kCount>& kinds) {
  const std::string name = spec.String(attribute, fallback);
  for (const auto& [known, kind] : kinds) {
    if (known == name) return kind;
  }
  Refuse(spec, fmt::format("{} \"{}\" is not supported", attribute, name));
}

constexpr std::array<std::pair<std::string_view, SampleMode>, 5> kSampleModes = {
    {{"linear", SampleMode::kLinear},
     {"bilinear", SampleMode::kLinear},
     {"nearest", SampleMode::kNearest},
     {"cubic", SampleMode::kCubic},
     {"bicubic", SampleMode::kCubic}}};
constexpr std::array<std::pair<std::string_view, SamplePadding>, 3> kSamplePaddings = {
    {{"zeros", SamplePadding::kZeros},
     {"border", SamplePadding::kBorder},
     {"reflection", SamplePadding::kReflection}}};

BuiltOp BuildGridSample(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  const SampleMode mode = KindNamed(spec, "mode", "linear", kSampleModes);
  if (mode == SampleMode::kCubic && spec.inputs[0].shape.size() != 4) {
    Refuse(spec, "mode cubic is for images of two dimensions");
  }
  const SamplePadding padding = KindNamed(spec, "padding_mode", "zeros", kSamplePaddings);
  const bool align_corners = spec.Int("align_corners", 0) != 0;
  return BuiltWithInputs(std::make_shared<GridSampleOp>(mode, padding, align_corners), 2);
}

// `x` mirrored into [low, high], however far away it is.
double Reflect(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  const double away = std::abs(x - low), cycles = std::floor(away / range), rest = away - cycles * range;
  return std::fmod(cycles, 2) == 0 ? low + rest : high - rest;
}

// The taps along one axis: which elements, -1 for one that counts as 0, and their weights.
struct Taps {
  std::array<int64_t, kMaxTaps> index;
  std::array<double, kMaxTaps> weight;
  int count = 0;

  void Add(double at, double weight_of_it, int64_t size, SamplePadding padding, bool align_corners) {
    if (padding == SamplePadding::kReflection) {
      at = align_corners ? Reflect(at, 0, static_cast<double>(size - 1))
                         : Reflect(at, -0.5, static_cast<double>(size) - 0.5);
    }
    if (padding != SamplePadding::kZeros) at = std::clamp(at, 0.0, static_cast<double>(size - 1));
    const bool inside = at >= 0 && at <= static_cast<double>(size - 1);  // not NaN either
    index[count] = inside ? std::llround(at) : -1;
    weight[count++] = weight_of_it;
  }
};

double CubicWeight(double distance) {
  const double d = std::abs(distance);
  if (d <= 1) return ((kKeysAlpha + 2) * d - (kKeysAlpha + 3)) * d * d + 1;
  return d < 2 ? ((kKeysAlpha * d - 5 * kKeysAlpha) * d + 8 * kKeysAlpha) * d - 4 * kKeysAlpha : 0;
}

Taps TapsAt(double place, int64_t size, SampleMode mode, SamplePadding padding, bool align_corners) {
  Taps taps;
  double at = align_corners ? (place + 1) / 2 * static_cast<double>(size - 1)
                            : ((place + 1) * static_cast<double>(size) - 1) / 2;
  if (mode == SampleMode::kCubic) {
    const double floor = std::floor(at);
    for (int i = -1; i <= 2; ++i) {
      taps.Add(floor + i, CubicWeight(at - floor - i), size, padding, align_corners);
    }
    return taps;
  }
  if (padding == SamplePadding::kBorder) at = std::clamp(at, 0.0, static_cast<double>(size - 1));
  if (padding == SamplePadding::kReflection) {
    at = align_corners ? Reflect(at, 0, static_cast<double>(size - 1))
                       : Reflect(at, -0.5, static_cast<double>(size) - 0.5);
    at = std::clamp(at, 0.0, static_cast<double>(size - 1));
  }
  if (mode == SampleMode::kNearest) {
    taps.Add(std::nearbyint(at), 1, size, SamplePadding::kZeros, align_corners);
    return taps;
  }
  const double floor = std::floor(at), far = at - floor;
  taps.Add(floor, 1 - far, size, SamplePadding::kZeros, align_corners);
  taps.Add(floor + 1, far, size, SamplePadding::kZeros, align_corners);
  return taps;
}

// Offsets in a channel and their weights: the product of the axes' taps.
struct Place {
  std::array<int64_t, 16> offset;
  std::array<double, 16> weight;
  int count = 0;
};

Place Combine(std::span<const Taps> axes, std::span<const int64_t> sizes) {
  Place place;
  place.offset[0] = 0;
  place.weight[0] = 1;
  place.count = 1;
  for (size_t a = 0; a < axes.size(); ++a) {
    Place next;
    for (int p = 0; p < place.count; ++p) {
      for (int t = 0; t < axes[a].count; ++t) {
        if (axes[a].index[t] < 0) continue;
        next.offset[next.count] = place.offset[p] * sizes[a] + axes[a].index[t];
        next.weight[next.count++] = place.weight[p] * axes[a].weight[t];
      }
    }
    place = next;
  }
  return place;
}

// The places of the output, in homogeneous coordinates: {pixels, rank + 1}, the last axis' first.
Tensor BaseGrid(const Shape& sizes, bool align_corners) {
  const int64_t rank = std::ssize(sizes), pixels = ElementCount(sizes);
  const std::vector<int64_t> strides = DenseStrides(sizes);
  Tensor base(Shape{pixels, rank + 1});
  for (int64_t p = 0; p < pixels; ++p) {
    for (int64_t a = 0; a < rank; ++a) {
      const int64_t at = p / strides[a] % sizes[a], size = sizes[a];
      const double place =
          align_corners ? (size == 1 ? 0 : 2.0 * static_cast<double>(at) / static_cast<double>(size - 1) - 1)
                        : (2.0 * static_cast<double>(at) + 1) / static_cast<double>(size) - 1;
      base.floats()[p * (rank + 1) + rank - 1 - a] = static_cast<float>(place);
    }
    base.floats()[p * (rank + 1) + rank] = 1;
  }
  return base;
}

// theta {N, r, r + 1} times the base grid.
BuiltOp BuildAffineGrid(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  const Shape& theta = ShapeOfRank(spec, 0, 3);
  const std::vector<int64_t> size = ConstantInts(spec, 1);
  const int64_t rank = std::ssize(size) - 2;
  if (rank < 2 || rank > 3 || theta != Shape{size[0], rank, rank + 1}) {
    Refuse(spec, fmt::format("theta {} for an image {}", ShapeToString(theta), ShapeToString(size)));
  }
  const Shape image(size.begin() + 2, size.end());
  if (std::ranges::min(image) < 1)
    Refuse(spec, fmt::format("its size {} must be positive", ShapeToString(size)));
  Shape base = image;
  base.push_back(rank + 1);
  NeedFoldable(spec, base);
  NodeWriter writer(spec);
  const std::string grid = writer.Constant(BaseGrid(image, spec.Int("align_corners", 0) != 0));
  const std::string product = writer.Add("MatMul", {grid, writer.Transpose(writer.In(0), {0, 2, 1})});
  Shape result = image;
  result.insert(result.begin(), size[0]);
  result.push_back(rank);
  writer.Reshape(product, result, writer.Out(0));
  return writer.Take();
}

}  // namespace

std::string GridSampleOp::Signature() const {
  constexpr std::string_view kModeNames[] = {"linear", "nearest", "cubic"};
  constexpr std::string_view kPaddingNames[] = {"zeros", "border", "reflection"};
  return fmt::format("GridSample {} {}{}", kModeNames[static_cast<int>(mode_)],
                     kPaddingNames[static_cast<int>(padding_)], align_corners_ ? " align_corners" : "");
}

Shape GridSampleOp::InferShape(std::span<const Shape> inputs) const {
  const Shape &image = inputs[0], &grid = inputs[1];
  const int64_t rank = std::ssize(image) - 2;
  const bool fits = rank >= 1 && rank <= kMaxAxes && grid.size() == image.size() && grid[0] == image[0] &&
                    grid.back() == rank && std::find(image.begin() + 2, image.end(), 0) == image.end();
  if (!fits) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("{} of {} at {}", Signature(), ShapeToString(image), ShapeToString(grid)));
  }
  Shape shape(grid.begin(), grid.end() - 1);
  shape.insert(shape.begin() + 1, image[1]);
  return shape;
}

Tensor GridSampleOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor &image = *inputs[0], &grid = *inputs[1];
  const Shape shapes[] = {image.shape(), grid.shape()};
  Tensor out(InferShape(shapes));
  const Shape sizes(image.shape().begin() + 2, image.shape().end());
  const int64_t rank = std::ssize(sizes), batch = image.shape()[0], channels = image.shape()[1];
  const int64_t pixels = ElementCount(sizes);
  const int64_t places = ElementCount(Shape(out.shape().begin() + 2, out.shape().end()));
  std::array<Taps, kMaxAxes> taps;
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t p = 0; p < places; ++p) {
      const float* at = grid.floats() + (n * places + p) * rank;
      for (int64_t a = 0; a < rank; ++a) {
        taps[a] = TapsAt(at[rank - 1 - a], sizes[a], mode_, padding_, align_corners_);
      }
      const Place place = Combine(std::span(taps).first(rank), sizes);
      for (int64_t c = 0; c < channels; ++c) {
        const float* from = image.floats() + (n * channels + c) * pixels;
        double sum = 0;
        for (int t = 0; t < place.count; ++t) sum += place.weight[t] * from[place.offset[t]];
        out.floats()[(n * channels + c) * places + p] = static_cast<float>(sum);
      }
    }
  }
  return out;
}

double GridSampleOp::Flops(std::span<const Shape> inputs) const {
  return 16.0 * static_cast<double>(ElementCount(InferShape(inputs)));
}

// GridSample, and AffineGrid as a MatMul.
std::vector<OpImporter> GridSampleImporters() {
  return {{"GridSample", BuildGridSample}, {"AffineGrid", BuildAffineGrid}};
}

namespace {

constexpr int64_t kTaskSamples = 4096;  // places times channels, of a task

// Tasks are runs of places of one image.
class GridSampleKernel : public Kernel {
 public:
  GridSampleKernel(const KernelRequest& request, SamplePadding padding, bool align_corners)
      : image_(request.inputs[0]),
        places_(request.output[2] * request.output[3]),
        task_places_(std::max<int64_t>(1, kTaskSamples / std::max<int64_t>(1, image_[1]))),
        padding_(padding),
        align_corners_(align_corners),
        loop_(TILESMITH_DISPATCH(request.cpu.isa, GridSampleLinear)) {}

  int64_t Tasks(int) const override { return image_[0] * CeilDiv(places_, task_places_); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const int64_t pieces = CeilDiv(places_, task_places_);
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t n = task / pieces, first = task % pieces * task_places_;
      loop_({.image = args.inputs[0].image<float>(n),
             .grid = args.inputs[1].image<float>(n) + 2 * first,
             .out = args.output.image<float>(n) + first,
             .channels = image_[1],
             .height = image_[2],
             .width = image_[3],
             .places = std::min(task_places_, places_ - first),
             .out_plane = places_,
             .padding = padding_,
             .align_corners = align_corners_});
    }
  }

 private:
  const Shape image_;
  const int64_t places_, task_places_;
  const SamplePadding padding_;
  const bool align_corners_;
  void (*const loop_)(const GridSampleRun&);
};

}  // namespace

std::unique_ptr<Kernel> GridSampleOp::MakeKernel(const KernelRequest& request) const {
  if (mode_ != SampleMode::kLinear || request.output.size() != 4) return MakeReferenceKernel(*this, request);
  return std::make_unique<GridSampleKernel>(request, padding_, align_corners_);
}

std::vector<SavedOp> GridSampleOps() { return {Saved<GridSampleOp>("GridSample")}; }

}  // namespace tilesmith
