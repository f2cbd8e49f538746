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
        centers_(normalization.spread == Spread::kVariance || normalization.spread == Spread::kDeviation),
        moments_(TILESMITH_DISPATCH(request.cpu.isa, MomentsOf)),
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
  // Of a row: elements less `center` + `rest` are divided by their spread, of which `factor` is the inverse.
  struct Measure {
    float center;
    double rest, factor;
  };

  // `offset`: of the row in its image.
  void RunRow(const float* in, float* out, int64_t offset) const {
    const Normalization& n = normalization_;
    const Measure row = centers_ ? MeasureCentered(in) : MeasureNorm(in);
    const double rest = -row.rest * row.factor;
    if (n.by_element || n.scale.empty()) {
      normalize_({in, out, together_, row.center, static_cast<float>(row.factor), static_cast<float>(rest),
                  n.scale.empty() ? nullptr : n.scale.data(), n.shift.data()});
      return;
    }
    for (int64_t i = 0; i < together_; i += segment_) {
      const int64_t channel = (offset + i) / segment_;
      normalize_({in + i, out + i, std::min(segment_, together_ - i), row.center,
                  static_cast<float>(row.factor * n.scale[channel]),
                  static_cast<float>(rest * n.scale[channel] + n.shift[channel]), nullptr, nullptr});
    }
  }

  // Squares are taken about some element, so that a mean far from 0 costs no digits, and once more about the
  // mean where that element lies so far from it that its own square would.
  Measure MeasureCentered(const float* in) const {
    constexpr double kLargestShare = 2;
    const auto count = static_cast<double>(together_);
    float center = in[together_ / 2];
    Moments moments{};
    double rest = 0, squares = 0;
    for (int pass = 0; pass < 2; ++pass) {
      moments = moments_(in, together_, center);
      rest = moments.sum / count;
      squares = moments.squares - moments.sum * rest;
      if (pass == 1 || moments.sum * rest <= kLargestShare * squares) break;
      center = static_cast<float>(center + rest);
    }
    if (!InRange(moments.squares)) return MeasureInDoubles(in);
    return {center, rest, NormalizationFactor(normalization_, std::max(squares, 0.0), count)};
  }

  Measure MeasureNorm(const float* in) const {
    const ReduceStep step =
        normalization_.spread == Spread::kL1 ? ReduceStep::kSumAbs : ReduceStep::kSumSquare;
    double sum = 0;
    for (int64_t i = 0; i < together_; i += kReduceRun)
      sum += reduce_(step, in + i, std::min(kReduceRun, together_ - i), 0);
    if (!InRange(sum)) return MeasureInDoubles(in);
    return {0, 0, NormalizationFactor(normalization_, sum, static_cast<double>(together_))};
  }

  // Whether a sum of squares of floats is one: none has become infinite, or 0 where that matters.
  bool InRange(double squares) const {
    return squares < 0x1p120 && (squares >= 0x1p-60 || normalization_.epsilon >= 0x1p-50f);
  }

  // The same for numbers whose squares are no floats.
  Measure MeasureInDoubles(const float* in) const {
    const auto count = static_cast<double>(together_);
    double mean = 0, sum = 0;
    for (int64_t i = 0; centers_ && i < together_; ++i) mean += in[i];
    mean /= count;
    for (int64_t i = 0; i < together_; ++i) {
      const double x = in[i] - mean;
      sum += normalization_.spread == Spread::kL1 ? std::abs(x) : x * x;
    }
    const auto center = static_cast<float>(mean);
    return {center, mean - center, NormalizationFactor(normalization_, sum, count)};
  }

  const Normalization& normalization_;
  const bool centers_;    // on the mean
  int64_t together_ = 1;  // elements of a row
  int64_t images_ = 0, rows_per_image_ = 1;
  int64_t segment_ = 1;  // adjacent elements with the same scale
  Moments (*const moments_)(const float*, int64_t, float);
  double (*const reduce_)(ReduceStep, const float*, int64_t, float);
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
