// What layout transforms and copies of a tensor cost, each distinct one measured once per machine.
#pragma once

#include <functional>

#include "graph_tuner/costs_file.h"
#include "layouts/layout.h"

namespace tilesmith {

// The one name that all layouts share which are the same memory for a tensor of this shape: NHWC is NCHW[C]c,
// and of one pixel there is a single block, or NCHW where nothing is padded. Same memory as `layout`.
Layout CanonicalLayout(const Shape& shape, const Layout& layout);

class TransformCosts {
 public:
  // Seconds to write the tensor in `to`, reading it in `from`; equal layouts mean a copy.
  using Measure = std::function<double(const Shape& shape, const Layout& from, const Layout& to)>;

  // `file` must outlive this.
  TransformCosts(CostFile& file, Measure measure) : file_(file), measure_(std::move(measure)) {}

  // 0 when SameMemory. Preconditions: rank <= 4, or both layouts NCHW.
  double Seconds(const Shape& shape, const Layout& from, const Layout& to);
  double CopySeconds(const Shape& shape, const Layout& layout);

 private:
  double Cached(const Shape& shape, const Layout& from, const Layout& to);

  CostFile& file_;
  Measure measure_;
};

// Measures the kernel that the executor runs, on `threads` threads.
TransformCosts::Measure TransformMeasure(const CpuInfo& cpu, int threads);

}  // namespace tilesmith
