#include "ops/reduce/normalization.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <ranges>

#include "layouts/base/error.h"
#include "ops/base/broadcast.h"
#include "ops/base/elementary.h"
#include "ops/base/elements.h"
#include "ops/base/import_util.h"
#include "ops/base/node_writer.h"
#include "ops/base/rounding.h"
#include "ops/base/saved_op.h"
#include "ops/reduce/reduce_loops.h"

namespace tilesmith {
namespace {

std::vector<int64_t> AxesFrom(int64_t first, size_t rank) {
  std::vector<int64_t> axes(rank - first);
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

BuiltOp Built(const NodeSpec& spec, Normalization normalization) {
  return BuiltWithInputs(std::make_shared<NormalizationOp>(spec.op_type, std::move(normalization)), 1);
}

const Shape& FloatShape(const NodeSpec& spec, size_t least_rank) {
  if (spec.inputs[0].type != DataType::kF32) Refuse(spec, "only float inputs are supported");
  const Shape& shape = spec.inputs[0].shape;
  if (shape.size() < least_rank) {
    Refuse(spec, fmt::format("its input {} has fewer than {} dimensions", ShapeToString(shape), least_rank));
  }
  return shape;
}

void CheckBroadcasts(const NodeSpec& spec, size_t index, const Shape& shape) {
  const Shape& from = spec.inputs[index].shape;
  if (BroadcastShapes(from, shape) == shape) return;
  Refuse(spec, fmt::format("input {} has shape {}, which does not fit {}", index, ShapeToString(from),
                           ShapeToString(shape)));
}

// A constant input as one value for each element of `shape`, which it broadcasts to.
std::vector<float> Broadcast(const NodeSpec& spec, size_t index, const Shape& shape) {
  const std::vector<float> values = ConstantFloats(spec, index);
  const Shape& from = spec.inputs[index].shape;
  CheckBroadcasts(spec, index, shape);
  std::vector<float> all;
  for (const int64_t i : BroadcastIndices(from, shape)) all.push_back(values[i]);
  return all;
}

// The same node with neither scale nor shift, whose scales are `ones`; then scale and shift, which are not
// known yet, as `parameter` gives them.
template <typename Parameter>
BuiltOp BuildScaledByNodes(const NodeSpec& spec, const Shape& ones, const Parameter& parameter) {
  NeedFoldable(spec, ones);
  NodeWriter writer(spec);
  Tensor scale(ones);
  std::fill_n(scale.floats(), scale.size(), 1.0f);
  std::vector<std::string> inputs = {writer.In(0), writer.Constant(std::move(scale))};
  if (spec.op_type != "LayerNormalization" && spec.op_type != "RMSNormalization") {
    inputs.push_back(writer.Constant(Tensor(ones)));
  }
  const std::string normal = writer.Add(spec.op_type, std::move(inputs), spec.attributes);
  if (!spec.HasInput(2)) {
    writer.Add("Mul", {normal, parameter(writer, 1)}, {}, writer.Out(0));
  } else {
    const std::string scaled = writer.Add("Mul", {normal, parameter(writer, 1)});
    writer.Add("Add", {scaled, parameter(writer, 2)}, {}, writer.Out(0));
  }
  return writer.Take();
}

// Also what LayerNormalization tells beside its result: mean and 1 / spread.
BuiltOp BuildWithStatistics(const NodeSpec& spec, const std::vector<int64_t>& axes) {
  NodeWriter writer(spec);
  const auto out = [&](size_t index) {
    return index < spec.output_names.size() ? writer.Out(index) : std::string();
  };
  std::vector<std::string> inputs = {writer.In(0), writer.In(1)};
  if (spec.HasInput(2)) inputs.push_back(writer.In(2));
  writer.Add("LayerNormalization", std::move(inputs), spec.attributes, writer.Out(0));
  const std::string mean = writer.Add("ReduceMean", {writer.In(0), writer.Ints(axes)}, {}, out(1));
  const std::string centered = writer.Add("Sub", {writer.In(0), mean});
  const std::string squares = writer.Add("Mul", {centered, centered});
  const std::string variance = writer.Add("ReduceMean", {squares, writer.Ints(axes)});
  const std::string more = writer.Add("Add", {variance, writer.Float(spec.Float("epsilon", 1e-5f))});
  writer.Add("Reciprocal", {writer.Add("Sqrt", {more})}, {}, out(2));
  return writer.Take();
}

// LayerNormalization, RMSNormalization.
BuiltOp BuildFromAxis(const NodeSpec& spec, Spread spread) {
  NeedInputs(spec, 2, 3);
  const Shape& shape = FloatShape(spec, 1);
  const int64_t axis = NormalAxis(spec, spec.Int("axis", -1), shape.size());
  const Shape together(shape.begin() + axis, shape.end());
  const auto wanted = [](const std::string& output) { return !output.empty(); };
  if (std::ranges::any_of(spec.output_names | std::views::drop(1), wanted)) {
    return BuildWithStatistics(spec, AxesFrom(axis, shape.size()));
  }
  if (!IsKnown(spec, 1) || !IsKnown(spec, 2)) {
    for (const size_t index : {size_t{1}, size_t{2}}) {
      if (spec.HasInput(index)) CheckBroadcasts(spec, index, together);
    }
    return BuildScaledByNodes(spec, together,
                              [](NodeWriter& writer, size_t index) { return writer.In(index); });
  }
  NeedFoldable(spec, together);
  Normalization result{spread, spec.Float("epsilon", 1e-5f), AxesFrom(axis, shape.size()), 0, {}, {}, true};
  result.scale = Broadcast(spec, 1, together);
  result.shift.assign(result.scale.size(), 0.0f);
  if (spec.HasInput(2)) result.shift = Broadcast(spec, 2, together);
  return Built(spec, std::move(result));
}

// Scale and shift of channels, or of groups of them as opset 18 has them.
BuiltOp BuildChannelsByNodes(const NodeSpec& spec, int64_t groups) {
  const Shape& shape = spec.inputs[0].shape;
  Shape per_channel(shape.size(), 1);
  per_channel[1] = shape[1];
  const auto is_of_groups = [&](size_t index) {
    const int64_t count = ElementCount(spec.inputs[index].shape);
    if (count == shape[1]) return false;
    if (groups > 0 && count == groups) return true;
    Refuse(spec, fmt::format("input {} has {} values for {} channels", index, count, shape[1]));
  };
  const bool of_groups[] = {is_of_groups(1), is_of_groups(2)};
  return BuildScaledByNodes(spec, {shape[1]}, [&](NodeWriter& writer, size_t index) {
    std::string values = writer.In(index);
    if (of_groups[index - 1]) {
      const std::string column = writer.Reshape(values, {groups, 1});
      values = writer.Add("Expand", {column, writer.Ints({groups, shape[1] / groups})});
    }
    return writer.Reshape(values, per_channel);
  });
}

// Inputs 1 and 2 as one value for each channel; of the groups, too, as opset 18 has them.
void ReadChannels(const NodeSpec& spec, int64_t channels, Normalization& result) {
  for (const size_t index : {size_t{1}, size_t{2}}) {
    std::vector<float> values = ConstantFloats(spec, index);
    const auto count = static_cast<int64_t>(values.size());
    if (result.groups > 0 && count == result.groups && count != channels) {
      std::vector<float> repeated;
      repeated.reserve(channels);
      for (int64_t c = 0; c < channels; ++c) repeated.push_back(values[c / (channels / result.groups)]);
      values = std::move(repeated);
    } else if (count != channels) {
      Refuse(spec, fmt::format("input {} has {} values for {} channels", index, count, channels));
    }
    (index == 1 ? result.scale : result.shift) = std::move(values);
  }
}

BuiltOp BuildInstance(const NodeSpec& spec) {
  NeedInputs(spec, 3, 3);
  const Shape& shape = FloatShape(spec, 2);
  if (!IsKnown(spec, 1) || !IsKnown(spec, 2)) return BuildChannelsByNodes(spec, 0);
  Normalization result{Spread::kVariance, spec.Float("epsilon", 1e-5f), AxesFrom(2, shape.size()), 0, {}, {}};
  ReadChannels(spec, shape[1], result);
  return Built(spec, std::move(result));
}

BuiltOp BuildGroup(const NodeSpec& spec) {
  NeedInputs(spec, 3, 3);
  const Shape& shape = FloatShape(spec, 2);
  const int64_t groups = spec.Int("num_groups", 0);
  if (groups < 1 || shape[1] % groups != 0) {
    Refuse(spec, fmt::format("num_groups is {}, which does not divide {} channels", groups, shape[1]));
  }
  if (!IsKnown(spec, 1) || !IsKnown(spec, 2)) return BuildChannelsByNodes(spec, groups);
  Normalization result{
      Spread::kVariance, spec.Float("epsilon", 1e-5f), AxesFrom(2, shape.size() + 1), groups, {}, {}};
  ReadChannels(spec, shape[1], result);
  return Built(spec, std::move(result));
}

BuiltOp BuildMeanVariance(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  const Shape& shape = FloatShape(spec, 1);
  std::vector<int64_t> axes = NormalAxes(spec, spec.Ints("axes", {0, 2, 3}), shape.size());
  return Built(spec, {Spread::kDeviation, 1e-9f, std::move(axes), 0, {}, {}});
}

BuiltOp BuildLp(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  const Shape& shape = FloatShape(spec, 1);
  const int64_t p = spec.Int("p", 2);
  if (p != 1 && p != 2) Refuse(spec, fmt::format("p is {}, supported are 1 and 2", p));
  const int64_t axis = NormalAxis(spec, spec.Int("axis", -1), shape.size());
  return Built(spec, {p == 1 ? Spread::kL1 : Spread::kL2, 0, {axis}, 0, {}, {}});
}

}  // namespace

double NormalizationFactor(const Normalization& normalization, double sum, double count) {
  switch (normalization.spread) {
    case Spread::kVariance:
    case Spread::kMeanSquare:
      return 1 / std::sqrt(sum / count + normalization.epsilon);
    case Spread::kDeviation:
      return 1 / (std::sqrt(sum / count) + normalization.epsilon);
    case Spread::kL1:
    case Spread::kL2: {
      const double norm = normalization.spread == Spread::kL1 ? sum : std::sqrt(sum);
      const double least = std::max(norm, static_cast<double>(normalization.epsilon));  // NaN stays
      return least == 0 ? 0 : 1 / least;
    }
  }
  return 1;
}

std::string NormalizationOp::Signature() const {
  return fmt::format("{} [{}] groups {} spread {} epsilon {}{}", type_, fmt::join(normalization_.axes, ","),
                     normalization_.groups, static_cast<int>(normalization_.spread), normalization_.epsilon,
                     normalization_.scale.empty() ? "" : " scaled");
}

Shape NormalizationOp::InferShape(std::span<const Shape> inputs) const {
  const Shape& shape = inputs[0];
  const Normalization& n = normalization_;
  const size_t rank = shape.size() + (n.groups > 0);
  bool fits = n.axes.empty() || n.axes.back() < static_cast<int64_t>(rank);
  if (n.groups > 0) fits = fits && shape.size() >= 2 && shape[1] % n.groups == 0;
  if (fits && n.by_element) {
    int64_t together = 1;
    for (const int64_t axis : n.axes) together *= shape[axis];
    fits = static_cast<int64_t>(n.scale.size()) == together;
  } else if (fits && !n.scale.empty()) {
    fits = shape.size() >= 2 && shape[1] == static_cast<int64_t>(n.scale.size());
  }
  if (!fits) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("{} cannot apply to {}", Signature(), ShapeToString(shape)));
  }
  return shape;
}

Tensor NormalizationOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor& input = *inputs[0];
  const Normalization& n = normalization_;
  Tensor output(input.shape());
  Shape view = input.shape();
  if (n.groups > 0) {
    view[1] /= n.groups;
    view.insert(view.begin() + 1, n.groups);
  }
  Shape kept = view;
  for (const int64_t axis : n.axes) kept[axis] = 1;
  const std::vector<int64_t> strides = DenseStrides(kept);
  std::vector<int64_t> group(input.size());
  for (int64_t i = 0; i < input.size(); ++i) {
    int64_t rest = i;
    for (size_t axis = view.size(); axis-- > 0; rest /= view[axis]) {
      if (kept[axis] != 1) group[i] += rest % view[axis] * strides[axis];
    }
  }
  const int64_t groups = ElementCount(kept), together = groups == 0 ? 0 : input.size() / groups;
  const auto count = static_cast<double>(together);
  const bool centers = n.spread == Spread::kVariance || n.spread == Spread::kDeviation;
  std::vector<double> means(groups, 0.0), sums(groups, 0.0);
  for (int64_t i = 0; centers && i < input.size(); ++i) means[group[i]] += input.floats()[i] / count;
  for (int64_t i = 0; i < input.size(); ++i) {
    const double x = input.floats()[i] - means[group[i]];
    sums[group[i]] += n.spread == Spread::kL1 ? std::abs(x) : x * x;
  }
  const int64_t channels = input.shape().size() < 2 ? 1 : input.shape()[1];
  const int64_t plane = input.size() == 0 ? 1 : input.size() / (input.shape()[0] * channels);
  for (int64_t i = 0; i < input.size(); ++i) {
    double value = (input.floats()[i] - means[group[i]]) * NormalizationFactor(n, sums[group[i]], count);
    if (!n.scale.empty()) {
      const int64_t at = n.by_element ? i % together : i / plane % channels;
      value = value * n.scale[at] + n.shift[at];
    }
    output.floats()[i] = static_cast<float>(value);
  }
  return output;
}

// LayerNormalization, RMSNormalization, InstanceNormalization, GroupNormalization, MeanVarianceNormalization,
// LpNormalization; scales and shifts that are not constant become nodes behind it.
std::vector<OpImporter> NormalizationImporters() {
  return {
      {"LayerNormalization", [](const NodeSpec& spec) { return BuildFromAxis(spec, Spread::kVariance); }},
      {"RMSNormalization", [](const NodeSpec& spec) { return BuildFromAxis(spec, Spread::kMeanSquare); }},
      {"InstanceNormalization", BuildInstance},
      {"GroupNormalization", BuildGroup},
      {"MeanVarianceNormalization", BuildMeanVariance},
      {"LpNormalization", BuildLp},
  };
}

namespace {

// NormalizationOp's formula. Precondition: HasNormalizationKernel. A task is what is normalized together.
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
  // In a row, elements less `center` + `rest` are divided by their spread, of which `factor` is the inverse.
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

std::unique_ptr<Kernel> NormalizationOp::MakeKernel(const KernelRequest& request) const {
  return HasNormalizationKernel(request.output, normalization_)
             ? std::make_unique<NormalizationKernel>(request, normalization_)
             : Op::MakeKernel(request);
}

Tensor NormalizationOp::RoundingBound(const OpRun& run) const {
  constexpr double kOfMeanAndSpread = 32;
  return BoundsOfLargest(run, kOfMeanAndSpread);
}
namespace {

BuiltOp BuildLrn(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  if (spec.inputs[0].type != DataType::kF32) Refuse(spec, "only float inputs are supported");
  const LrnParameters parameters{spec.Int("size", 0), spec.Float("alpha", 1e-4f), spec.Float("beta", 0.75f),
                                 spec.Float("bias", 1)};
  if (parameters.size < 1) Refuse(spec, fmt::format("size must be at least 1, is {}", parameters.size));
  return BuiltWithInputs(std::make_shared<LrnOp>(parameters), 1);
}

}  // namespace

std::string LrnOp::Signature() const {
  return fmt::format("LRN {} {} {} {}", parameters_.size, parameters_.alpha, parameters_.beta,
                     parameters_.bias);
}

Shape LrnOp::InferShape(std::span<const Shape> inputs) const {
  if (inputs[0].size() < 2)
    throw Error(ErrorCode::kBadModel,
                fmt::format("LRN of {}, which has no channels", ShapeToString(inputs[0])));
  return inputs[0];
}

Tensor LrnOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor& input = *inputs[0];
  Tensor output(input.shape());
  const int64_t images = input.shape()[0], channels = input.shape()[1];
  const int64_t plane = images * channels == 0 ? 0 : input.size() / (images * channels);
  const int64_t before = (parameters_.size - 1) / 2, after = parameters_.size - 1 - before;
  for (int64_t n = 0; n < images; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < plane; ++i) {
        const auto at = [&](int64_t channel) { return (n * channels + channel) * plane + i; };
        double squares = 0;
        for (int64_t k = std::max<int64_t>(0, c - before); k <= std::min(channels - 1, c + after); ++k)
          squares += static_cast<double>(input.floats()[at(k)]) * input.floats()[at(k)];
        const double scale = elementary::Pow(
            parameters_.bias + parameters_.alpha / static_cast<double>(parameters_.size) * squares,
            parameters_.beta);
        output.floats()[at(c)] = static_cast<float>(input.floats()[at(c)] / scale);
      }
    }
  }
  return output;
}

double LrnOp::Flops(std::span<const Shape> inputs) const {
  const int64_t channels = inputs[0].size() < 2 ? 1 : inputs[0][1];
  return 2.0 * ElementCount(inputs[0]) * static_cast<double>(std::min(parameters_.size, channels));
}

std::vector<OpImporter> LrnImporters() { return {{"LRN", BuildLrn}}; }

std::vector<SavedOp> NormalizationOps() {
  return {Saved<NormalizationOp>("Normalization"), Saved<LrnOp>("Lrn")};
}

}  // namespace tilesmith
