// What layout transforms and copies of a tensor cost, each distinct one measured once per machine; or, when
// asked to, estimated from two that were.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "graph_tuner/costs/costs_file.h"
#include "layouts/layout.h"
#include "templates/device/device.h"

namespace tilesmith {

class TransformCosts {
 public:
  // Seconds to write the tensor in `to`, reading it in `from`; equal layouts mean a copy.
  using Measure = std::function<double(const Shape& shape, const Layout& from, const Layout& to)>;

  // `file` must outlive this. With `interpolate`, a transform of n elements that the file lacks, but of which
  // it has the same pair of layouts for fewer and for more elements, at most kInterpolationSpan times apart,
  // costs what the line through the nearest two says at n. Estimates are not added to the file.
  TransformCosts(CostFile& file, Measure measure, bool interpolate = false)
      : file_(file), measure_(std::move(measure)), interpolate_(interpolate) {}

  // 0 when SameMemory. Preconditions: rank <= 4, or both layouts NCHW.
  double Seconds(const Shape& shape, const Layout& from, const Layout& to);
  double CopySeconds(const Shape& shape, const Layout& layout);
  // Whether Seconds has estimated this transform.
  bool IsInterpolated(const Shape& shape, const Layout& from, const Layout& to) const;

  static constexpr double kInterpolationSpan = 8;

 private:
  double FromFile(const Shape& shape, const Layout& from, const Layout& to);
  std::optional<double> Interpolate(const Shape& shape, const Layout& from, const Layout& to) const;

  CostFile& file_;
  Measure measure_;
  bool interpolate_;
  std::map<CostKey, double> estimates_;  // once given they stay, whatever is measured later
  std::map<std::tuple<Shape, Layout, Layout>, double> known_;
};

// Measures the kernel that the executor runs, on `threads` threads.
TransformCosts::Measure TransformMeasure(DevicePtr device);

}  // namespace tilesmith
