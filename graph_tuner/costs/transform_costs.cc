#include "graph_tuner/costs/transform_costs.h"

#include <fmt/format.h>

#include <sstream>

#include "graph_tuner/costs/costs_timing.h"
#include "graph_tuner/costs/layout_forms.h"
#include "layouts/transform.h"
#include "layouts/transform_benchmark.h"

namespace tilesmith {
namespace {

// All that matters for the time: images, channels and pixels.
Shape FourSizes(const Shape& shape) {
  if (shape.size() > 4) return {shape[0], ElementCount(shape) / shape[0], 1, 1};
  const Dims4 dims = ToDims4(shape);
  return {dims.n, dims.c, dims.h, dims.w};
}

CostKey KeyOf(const Shape& shape, const Layout& from, const Layout& to) {
  return {{"kind", "transform"},
          {"shape", ShapeToString(shape)},
          {"from", from.ToString()},
          {"to", to.ToString()}};
}

// "1x64x56x56" -> its four sizes; none when that is not what the text is, or no tensor is so large.
Shape ParseShape(const std::string& text) {
  constexpr double kMaxElements = 1e15;
  Shape shape;
  double elements = 1;
  std::istringstream sizes(text);
  for (int64_t size = 0; shape.size() < 4 && sizes >> size; sizes.ignore(1, 'x')) {
    if (size < 1) return {};
    elements *= static_cast<double>(size);
    shape.push_back(size);
  }
  return shape.size() == 4 && elements <= kMaxElements ? shape : Shape();
}

// The value of a key's field, "" where a damaged file lacks it.
std::string FieldOf(const CostKey& key, const char* field) {
  const auto found = key.find(field);
  return found == key.end() ? "" : found->second;
}

// The layout's name but for the number of channels: canonical layouts spell NHWC as a block of all of them.
std::string KindOfLayout(const Shape& shape, const std::string& canonical) {
  const std::string_view order = std::string_view(canonical).substr(0, canonical.find(':'));
  const bool all_channels = shape.size() == 4 && order == fmt::format("NCHW{}c", shape[1]);
  if (!all_channels || shape[1] == 1) return canonical;
  return Layout::Nhwc().ToString() + canonical.substr(order.size());
}

}  // namespace

double TransformCosts::Seconds(const Shape& shape, const Layout& from, const Layout& to) {
  if (from == to || SameMemory(shape, from, to)) return 0;
  const std::tuple key = {shape, from, to};
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  return known_[key] = FromFile(FourSizes(shape), CanonicalLayout(shape, from), CanonicalLayout(shape, to));
}

double TransformCosts::CopySeconds(const Shape& shape, const Layout& layout) {
  const Layout canonical = CanonicalLayout(shape, layout);
  return FromFile(FourSizes(shape), canonical, canonical);
}

bool TransformCosts::IsInterpolated(const Shape& shape, const Layout& from, const Layout& to) const {
  return estimates_.contains(
      KeyOf(FourSizes(shape), CanonicalLayout(shape, from), CanonicalLayout(shape, to)));
}

std::optional<double> TransformCosts::Interpolate(const Shape& shape, const Layout& from,
                                                  const Layout& to) const {
  const std::string from_kind = KindOfLayout(shape, from.ToString());
  const std::string to_kind = KindOfLayout(shape, to.ToString());
  const auto wanted = static_cast<double>(ElementCount(shape));
  struct Point {
    double elements = 0, seconds = 0;
  };
  std::optional<Point> below, above;
  for (const auto& [key, seconds] : file_.figures()) {
    if (FieldOf(key, "kind") != "transform") continue;
    const Shape other = ParseShape(FieldOf(key, "shape"));
    if (other.empty() || KindOfLayout(other, FieldOf(key, "from")) != from_kind ||
        KindOfLayout(other, FieldOf(key, "to")) != to_kind)
      continue;
    const auto elements = static_cast<double>(ElementCount(other));
    if (elements <= wanted && (!below || elements > below->elements)) below = Point{elements, seconds};
    if (elements >= wanted && (!above || elements < above->elements)) above = Point{elements, seconds};
  }
  if (!below || !above || above->elements > kInterpolationSpan * below->elements) return std::nullopt;
  if (above->elements == below->elements) return (below->seconds + above->seconds) / 2;
  const double share = (wanted - below->elements) / (above->elements - below->elements);
  return below->seconds + share * (above->seconds - below->seconds);
}

double TransformCosts::FromFile(const Shape& shape, const Layout& from, const Layout& to) {
  const CostKey key = KeyOf(shape, from, to);
  if (const auto known = file_.Find(key)) return *known;
  if (const auto estimated = estimates_.find(key); estimated != estimates_.end()) return estimated->second;
  if (interpolate_ && from != to) {
    if (const auto estimate = Interpolate(shape, from, to)) return estimates_[key] = *estimate;
  }
  const double seconds = measure_(shape, from, to);
  file_.Add(key, seconds);
  return seconds;
}

TransformCosts::Measure TransformMeasure(DevicePtr device) {
  return [=](const Shape& shape, const Layout& from, const Layout& to) {
    if (from != to) return device->TimeTransform(shape, from, to);
    Tensor source = TimingInput(shape, from);
    Tensor copy(shape, to);
    Tensor* const inputs[] = {&source};
    return TimeKernel(*device, *device->BuildTransform(shape, from, to), inputs, copy);
  };
}

}  // namespace tilesmith
