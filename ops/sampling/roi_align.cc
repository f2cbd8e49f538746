#include "ops/sampling/roi_align.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ops/base/elements.h"
#include "ops/base/import_util.h"
#include "ops/base/saved_op.h"

namespace tilesmith {
namespace {

// What adaptive sampling takes of a bin at most, along an axis: a region may be as large as its file says.
constexpr int64_t kMaxSamples = 1 << 10;

BuiltOp BuildRoiAlign(const NodeSpec& spec) {
  NeedInputs(spec, 3, 3);
  RoiAlignParams p;
  const std::string mode = spec.String("mode", "avg");
  if (mode != "avg" && mode != "max")
    Refuse(spec, fmt::format("mode \"{}\" is unknown (known: avg, max)", mode));
  p.max = mode == "max";
  const std::string transform =
      spec.String("coordinate_transformation_mode", spec.opset < 16 ? "output_half_pixel" : "half_pixel");
  if (transform != "half_pixel" && transform != "output_half_pixel") {
    Refuse(spec, fmt::format("coordinate_transformation_mode \"{}\" is unknown", transform));
  }
  p.half_pixel = transform == "half_pixel";
  p.height = spec.Int("output_height", 1);
  p.width = spec.Int("output_width", 1);
  p.samples = spec.Int("sampling_ratio", 0);
  p.scale = spec.Float("spatial_scale", 1);
  if (p.height < 1 || p.width < 1 || p.samples < 0 || p.samples > kMaxSamples) {
    Refuse(spec, fmt::format("an output of {}x{} by {} samples", p.height, p.width, p.samples));
  }
  return BuiltWithInputs(std::make_shared<RoiAlignOp>(p), 3);
}

// A sample between four pixels of a channel.
struct Corners {
  std::array<int64_t, 4> offset{};
  std::array<float, 4> weight{};
};

Corners CornersAt(float y, float x, int64_t height, int64_t width) {
  // Up to a pixel outside counts as the edge, farther away as 0. NaN does, too.
  if (!(y >= -1) || !(y <= static_cast<float>(height)) || !(x >= -1) || !(x <= static_cast<float>(width)))
    return {};
  y = std::max(y, 0.0f), x = std::max(x, 0.0f);
  int64_t top = static_cast<int64_t>(y), left = static_cast<int64_t>(x), bottom = top + 1, right = left + 1;
  if (top >= height - 1) top = bottom = height - 1, y = static_cast<float>(top);
  if (left >= width - 1) left = right = width - 1, x = static_cast<float>(left);
  const float down = y - static_cast<float>(top), over = x - static_cast<float>(left);
  return {{top * width + left, top * width + right, bottom * width + left, bottom * width + right},
          {(1 - down) * (1 - over), (1 - down) * over, down * (1 - over), down * over}};
}

int64_t SamplesOf(int64_t given, float extent, int64_t bins) {
  if (given > 0) return given;
  const float wanted = std::ceil(extent / static_cast<float>(bins));
  return wanted >= 1  ? static_cast<int64_t>(std::min(wanted, static_cast<float>(kMaxSamples)))
         : wanted < 1 ? 0
                      : 1;
}

struct Tap {
  int64_t offset = 0;
  float weight = 0;
};

// Bins of a region from `first` on: of each its taps, from begins[i] to begins[i + 1].
struct RegionBins {
  int64_t first = 0;
  std::vector<Tap> taps;
  std::vector<size_t> begins;

  int64_t end() const { return first + static_cast<int64_t>(begins.size()) - 1; }
};

// Taps of one pixel become one, but for maxima.
void AddTaps(const Corners& corners, bool merge, size_t begin, std::vector<Tap>& taps) {
  for (int k = 0; k < 4; ++k) {
    const auto same = std::find_if(taps.begin() + static_cast<int64_t>(begin), taps.end(),
                                   [&](const Tap& tap) { return tap.offset == corners.offset[k]; });
    if (merge && same != taps.end()) {
      same->weight += corners.weight[k];
    } else {
      taps.push_back({corners.offset[k], corners.weight[k]});
    }
  }
}

// From `first` on as many as have some room for their taps, which is most often all; at least one.
void FindBins(const RoiAlignParams& p, const float* region, const Dims4& in, int64_t first,
              RegionBins& bins) {
  constexpr size_t kManyTaps = size_t{1} << 20;
  constexpr int64_t kMaxMerged = 16;  // samples; of more, finding those of a pixel takes longer than they do
  const float shift = p.half_pixel ? 0.5f : 0.0f;
  const float x0 = region[0] * p.scale - shift, y0 = region[1] * p.scale - shift;
  float width = region[2] * p.scale - shift - x0, height = region[3] * p.scale - shift - y0;
  if (!p.half_pixel) width = std::max(width, 1.0f), height = std::max(height, 1.0f);
  const int64_t rows = SamplesOf(p.samples, height, p.height), columns = SamplesOf(p.samples, width, p.width);
  const float bin_height = height / static_cast<float>(p.height),
              bin_width = width / static_cast<float>(p.width);
  const bool merge = !p.max && rows * columns <= kMaxMerged;
  const float share = p.max ? 1 : 1 / static_cast<float>(std::max<int64_t>(rows * columns, 1));
  bins.first = first;
  bins.taps.clear();
  bins.begins.assign(1, 0);
  for (int64_t bin = first; bin < p.height * p.width && bins.taps.size() < kManyTaps; ++bin) {
    const float top = y0 + static_cast<float>(bin / p.width) * bin_height,
                left = x0 + static_cast<float>(bin % p.width) * bin_width;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        AddTaps(CornersAt(top + (static_cast<float>(i) + 0.5f) * bin_height / static_cast<float>(rows),
                          left + (static_cast<float>(j) + 0.5f) * bin_width / static_cast<float>(columns),
                          in.h, in.w),
                merge, bins.begins.back(), bins.taps);
      }
    }
    for (size_t tap = bins.begins.back(); tap < bins.taps.size(); ++tap) bins.taps[tap].weight *= share;
    bins.begins.push_back(bins.taps.size());
  }
}

// A bin of one channel.
template <typename Sum>
float Pool(bool max, std::span<const Tap> taps, const float* plane) {
  if (max) {
    float largest = taps.empty() ? 0 : -std::numeric_limits<float>::infinity();
    for (const Tap& tap : taps) largest = std::max(largest, tap.weight * plane[tap.offset]);
    return largest;
  }
  Sum sum = 0;
  for (const Tap& tap : taps) sum += static_cast<Sum>(tap.weight) * plane[tap.offset];
  return static_cast<float>(sum);
}

// All channels of a region; `bins` is memory for it.
template <typename Sum>
void AlignRegion(const RoiAlignParams& p, const float* region, const Dims4& in, const float* image,
                 float* out, RegionBins& bins) {
  const int64_t count = p.height * p.width;
  for (int64_t first = 0; first < count; first = bins.end()) {
    FindBins(p, region, in, first, bins);
    for (int64_t c = 0; c < in.c; ++c) {
      const float* const plane = image + c * in.h * in.w;
      for (int64_t bin = first; bin < bins.end(); ++bin) {
        const size_t begin = bins.begins[bin - first], end = bins.begins[bin - first + 1];
        out[c * count + bin] = Pool<Sum>(p.max, std::span(bins.taps).subspan(begin, end - begin), plane);
      }
    }
  }
}

int64_t CheckedImage(int64_t image, int64_t region, int64_t images) {
  if (image >= 0 && image < images) return image;
  throw Error(ErrorCode::kBadModel, fmt::format("region {} is of image {} of {}", region, image, images));
}

// A task is a region.
class RoiAlignKernel : public Kernel {
 public:
  RoiAlignKernel(const RoiAlignParams& params, const KernelRequest& request)
      : params_(params), in_(ToDims4(request.inputs[0])), regions_(request.inputs[1][0]) {}

  int64_t Tasks(int) const override { return regions_; }
  void Run(const KernelArgs& args, int, TaskRange range) const override {
    RegionBins bins;
    for (int64_t r = range.begin; r < range.end; ++r) {
      const int64_t image = CheckedImage(*args.inputs[2].image<int64_t>(r), r, in_.n);
      AlignRegion<float>(params_, args.inputs[1].image<float>(r), in_, args.inputs[0].image<float>(image),
                         args.output.image<float>(r), bins);
    }
  }

 private:
  const RoiAlignParams params_;
  const Dims4 in_;
  const int64_t regions_;
};

}  // namespace

std::string RoiAlignOp::Signature() const {
  const RoiAlignParams& p = params_;
  return fmt::format("RoiAlign {} {}x{} samples {} scale {}{}", p.max ? "max" : "mean", p.height, p.width,
                     p.samples, p.scale, p.half_pixel ? " half_pixel" : "");
}

Shape RoiAlignOp::InferShape(std::span<const Shape> inputs) const {
  const Shape &image = inputs[0], &regions = inputs[1];
  if (image.size() != 4 || regions.size() != 2 || regions[1] != 4 || inputs[2] != Shape{regions[0]} ||
      (regions[0] > 0 && image[2] * image[3] == 0)) {
    throw Error(ErrorCode::kBadModel, fmt::format("{} of {} at {} and {}", Signature(), ShapeToString(image),
                                                  ShapeToString(regions), ShapeToString(inputs[2])));
  }
  return {regions[0], image[1], params_.height, params_.width};
}

DataType RoiAlignOp::OutputType(std::span<const DataType> inputs) const {
  if (!IsInteger(inputs[2])) throw Error(ErrorCode::kBadModel, "its batch indices must be integers");
  return Op::OutputType(inputs.first(2));
}

Tensor RoiAlignOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor &image = *inputs[0], &regions = *inputs[1];
  const RoiAlignParams& p = params_;
  const Dims4 in = ToDims4(image.shape());
  const int64_t count = regions.shape()[0], bins = (Checked(p.height) * p.width).value();
  Tensor out(Shape{count, in.c, p.height, p.width});
  const std::vector<int64_t> batches = ElementsAs<int64_t>(*inputs[2]);
  RegionBins found;
  for (int64_t r = 0; r < count; ++r) {
    AlignRegion<double>(p, regions.floats() + r * 4, in,
                        image.floats() + CheckedImage(batches[r], r, in.n) * in.c * in.h * in.w,
                        out.floats() + r * in.c * bins, found);
  }
  return out;
}

double RoiAlignOp::Flops(std::span<const Shape> inputs) const {
  constexpr double kPerSample = 8;
  const auto samples = static_cast<double>(std::max<int64_t>(params_.samples, 1));
  return kPerSample * samples * samples * static_cast<double>(ElementCount(InferShape(inputs)));
}

std::unique_ptr<Kernel> RoiAlignOp::MakeKernel(const KernelRequest& request) const {
  return std::make_unique<RoiAlignKernel>(params_, request);
}

bool RoiAlignOp::KernelTakes(std::span<const DataType> inputs) const {
  return inputs[0] == DataType::kF32 && inputs[1] == DataType::kF32 && inputs[2] == DataType::kI64;
}

// RoiAlign.
std::vector<OpImporter> RoiAlignImporters() { return {{"RoiAlign", BuildRoiAlign}}; }

std::vector<SavedOp> RoiAlignOps() { return {Saved<RoiAlignOp>("RoiAlign")}; }

}  // namespace tilesmith
