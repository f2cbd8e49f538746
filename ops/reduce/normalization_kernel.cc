#include "ops/reduce/normalization_kernel.h"

#include <algorithm>
#include <cmath>

#include "ops/reduce/reduce_loops.h"

namespace tilesmith {
namespace {

class NormalizationKernel : public Kernel {
 public:
  NormalizationKernel(const KernelRequest& request, const Normalization& normalization)
      : normalization_(normalization),
        reduce_(TILESMITH_DISPATCH(request.cpu.isa, ReduceRun)),
        normalize_(TILESMITH_DISPATCH(request.cpu.isa, NormalizeRun)) {
    Shape view = request.output;
    if (normalization.groups > 0) {
      view[1] /= normalization.groups;
      view.insert(view.begin() + 1, normalization.groups);
    }
    for (const int64_t axis : normalization.axes) together_ *= view[axis];
    const int64_t count = ElementCount(request.output);
    images_ = count == 0 ? 0 : view[0];
    if (images_ > 0) rows_per_image_ = count / together_ / images_;
    if (normalization.scale.empty()) {
      segment_ = std::max<int64_t>(together_, 1);
    } else if (!normalization.by_element) {
      segment_ = BatchStride(request.output, Layout::Nchw()) / std::max<int64_t>(request.output[1], 1);
      segment_ = std::max<int64_t>(segment_, 1);
    }
  }

  int64_t Tasks(int) const override { return images_ * rows_per_image_; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    for (int64_t row = range.begin; row < range.end; ++row) {
      const int64_t image = row / rows_per_image_, offset = row % rows_per_image_ * together_;
      RunRow(args.inputs[0].image<float>(image) + offset, args.output.image<float>(image) + offset, offset);
    }
  }

 private:
  // `offset`: of the row in its image.
  void RunRow(const float* in, float* out, int64_t offset) const {
    static constexpr float kOne = 1, kZero = 0;
    const auto count = static_cast<double>(together_);
    const Normalization& n = normalization_;
    double mean = 0;
    if (n.spread == Spread::kVariance || n.spread == Spread::kDeviation)
      mean = Sum(ReduceStep::kSum, in, 0) / count;
    const auto center = static_cast<float>(mean);
    const double sum =
        Sum(n.spread == Spread::kL1 ? ReduceStep::kSumAbs : ReduceStep::kSumSquare, in, center);
    const auto factor = static_cast<float>(NormalizationFactor(n, sum, count));
    if (n.by_element) {
      normalize_({in, out, together_, center, factor, n.scale.data(), n.shift.data(), true});
      return;
    }
    for (int64_t i = 0; i < together_; i += segment_) {
      const int64_t channel = (offset + i) / segment_;
      const float* scale = n.scale.empty() ? &kOne : &n.scale[channel];
      const float* shift = n.scale.empty() ? &kZero : &n.shift[channel];
      normalize_({in + i, out + i, std::min(segment_, together_ - i), center, factor, scale, shift, false});
    }
  }

  double Sum(ReduceStep step, const float* in, float shift) const {
    double sum = 0;
    for (int64_t i = 0; i < together_; i += kReduceRun) {
      sum += reduce_(step, in + i, std::min(kReduceRun, together_ - i), shift);
    }
    return sum;
  }

  const Normalization& normalization_;
  int64_t together_ = 1;  // elements of a row
  int64_t images_ = 0, rows_per_image_ = 1;
  int64_t segment_ = 1;  // adjacent elements with the same scale
  float (*const reduce_)(ReduceStep, const float*, int64_t, float);
  void (*const normalize_)(const NormalizeRunArgs&);
};

}  // namespace

bool HasNormalizationKernel(const Shape& shape, const Normalization& normalization) {
  const int64_t rank = static_cast<int64_t>(shape.size()) + (normalization.groups > 0);
  const auto& axes = normalization.axes;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != rank - static_cast<int64_t>(axes.size() - i)) return false;
  }
  // In tensors of rank 1 elements are images.
  return rank >= 2 && (axes.empty() || axes[0] > 0 || shape[0] == 1);
}

std::unique_ptr<Kernel> MakeNormalizationKernel(const KernelRequest& request,
                                                const Normalization& normalization) {
  return std::make_unique<NormalizationKernel>(request, normalization);
}

}  // namespace tilesmith
