#include "graph_tuner/transform_costs.h"

#include "graph_tuner/costs_timing.h"
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

}  // namespace

Layout CanonicalLayout(const Shape& shape, const Layout& layout) {
  if (shape.size() > 4) return layout;
  const Dims4 dims = ToDims4(shape);
  const int64_t padded = layout.PaddedChannels(dims.c);
  if (dims.h * dims.w == 1) return padded == dims.c ? Layout::Nchw() : Layout::Blocked(padded);
  return layout.is_nhwc() ? Layout::Blocked(dims.c) : layout;
}

double TransformCosts::Seconds(const Shape& shape, const Layout& from, const Layout& to) {
  if (from == to || SameMemory(shape, from, to)) return 0;
  return Cached(FourSizes(shape), CanonicalLayout(shape, from), CanonicalLayout(shape, to));
}

double TransformCosts::CopySeconds(const Shape& shape, const Layout& layout) {
  const Layout canonical = CanonicalLayout(shape, layout);
  return Cached(FourSizes(shape), canonical, canonical);
}

double TransformCosts::Cached(const Shape& shape, const Layout& from, const Layout& to) {
  const CostKey key{{"kind", "transform"},
                    {"shape", ShapeToString(shape)},
                    {"from", from.ToString()},
                    {"to", to.ToString()}};
  if (const auto known = file_.Find(key)) return *known;
  const double seconds = measure_(shape, from, to);
  file_.Add(key, seconds);
  return seconds;
}

TransformCosts::Measure TransformMeasure(const CpuInfo& cpu, int threads) {
  return [=](const Shape& shape, const Layout& from, const Layout& to) {
    if (from != to) return MeasureTransform(shape, from, to, cpu, threads).seconds;
    Tensor source = TimingInput(shape, from);
    Tensor copy(shape, to);
    Tensor* const inputs[] = {&source};
    return TimeKernel(*MakeTransformKernel(shape, from, to, cpu), inputs, copy, threads);
  };
}

}  // namespace tilesmith
