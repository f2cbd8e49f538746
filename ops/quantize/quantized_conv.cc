#include "ops/quantize/quantized_conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "ops/base/elements.h"
#include "ops/base/saved_op.h"
#include "ops/quantize/integer_loops.h"

namespace tilesmith {
namespace {

// The value of output channel `o`, or of all of them.
template <typename T>
T ValueFor(const std::vector<T>& values, int64_t o) {
  return values.size() == 1 ? values[0] : values[static_cast<size_t>(o)];
}

void NeedBytes(const Quantization& output, const StoredRange& limits) {
  TILESMITH_CHECK(IsByte(output.type) && output.per_tensor());
  const StoredRange range = RangeOf(output.type);
  TILESMITH_CHECK(range.low <= limits.low && limits.low <= limits.high && limits.high <= range.high);
}

[[noreturn]] void RefuseConv(const std::string& reason) { throw Error(ErrorCode::kBadModel, reason); }

// The float m near `exact` for which round(float(sum) * m) is round(sum * exact) for all sums of as many
// steps as `range` has: the nearest float but where some sum is so near the middle between two steps that its
// product with that is the middle or beyond; then a neighbour, if that is better.
float RoundingMultiplier(double exact, const StoredRange& range) {
  constexpr double kNear = 0x1p-21;      // relative, more than what a float's product is off by
  constexpr double kInteger = 0x1.8p52;  // added and taken away, it rounds to an integer
  constexpr double kExactSums = 0x1p24;  // larger ones are no floats
  const auto nearest = static_cast<float>(exact);
  if (!std::isnormal(nearest)) return nearest;
  const int64_t steps = range.high - range.low;
  const double inverse = 1 / exact;
  // Below 0 is the same once more.
  std::vector<std::pair<float, double>> near;  // sums, and the middles of steps that they are near
  for (int64_t step = 0; step < steps; ++step) {
    const double middle = static_cast<double>(step) + 0.5;
    const double sum = middle * inverse + kInteger - kInteger;
    if (std::abs(sum * exact - middle) <= kNear * middle && std::abs(sum) <= kExactSums)
      near.emplace_back(static_cast<float>(sum), middle);
  }
  const auto wrong = [&](float m) {
    return std::ranges::count_if(near, [&](const auto& pair) {
      const auto [sum, middle] = pair;
      const double rounded = sum * m, product = sum * exact;
      return (rounded < middle) != (product < middle) || (rounded > middle) != (product > middle);
    });
  };
  if (wrong(nearest) == 0) return nearest;
  float best = nearest;
  for (const float other : {std::nextafter(nearest, 0.0F), std::nextafter(nearest, 2 * nearest)})
    if (wrong(other) < wrong(best)) best = other;
  return best;
}

// Whether sums of scale `input` times those of the weights are what the bias counts in.
bool BiasFits(const QuantizedTensor& bias, const Quantization& input, const Quantization& weights) {
  const std::vector<float>& scales = bias.quantization.scales;
  if (bias.quantization.type != DataType::kI32) return false;
  for (size_t o = 0; o < std::max(scales.size(), weights.scales.size()); ++o) {
    const float scale = scales.size() == 1 ? scales[0] : scales[o];
    const float product = input.scales[0] * (weights.per_tensor() ? weights.scales[0] : weights.scales[o]);
    if (!(std::abs(scale - product) <= 1e-4f * product)) return false;
  }
  return true;
}

}  // namespace

OpPtr QuantizedConvOp::Of(const ConvWorkload& workload, const StoredWeights& stored, const ByteForm& form) {
  const PostOps post{.bias = workload.post.bias, .sum = false, .activation = {}};
  if (stored.weights == nullptr || workload.post != post) return nullptr;
  const Quantization& weights = stored.weights->quantization;
  if (!IsByte(weights.type) || (!weights.per_tensor() && weights.axis != 0)) return nullptr;
  if (post.bias && (stored.bias == nullptr || !BiasFits(*stored.bias, form.inputs[0], weights)))
    return nullptr;
  try {
    return std::make_shared<QuantizedConvOp>(
        workload, QuantizedConvParams{form.inputs[0], *stored.weights,
                                      post.bias ? stored.bias->stored : nullptr, form.output, form.limits});
  } catch (const Error&) {  // its sums would not fit
    return nullptr;
  }
}

QuantizedConvOp::QuantizedConvOp(const ConvWorkload& workload, QuantizedConvParams params)
    : ConvolutionOp(workload), params_(std::move(params)) {
  workload_.bytes.reset();
  ValidateWorkload(workload_);
  const auto& [input, weights, bias, output, limits, sum] = params_;
  const bool real = output.type == DataType::kF32;
  const PostOps allowed{.bias = workload_.post.bias, .sum = sum.has_value(), .activation = {}};
  TILESMITH_CHECK(!workload_.fused() && workload_.post == allowed, "{}", WorkloadToString(workload_));
  TILESMITH_CHECK(IsByte(input.type) && input.per_tensor());
  TILESMITH_CHECK(weights.stored && weights.stored->size() == ElementCount(workload_.weights_shape()));
  TILESMITH_CHECK(IsByte(weights.quantization.type) && weights.stored->type() == weights.quantization.type);
  TILESMITH_CHECK(
      weights.quantization.per_tensor() ||
      (weights.quantization.axis == 0 && std::ssize(weights.quantization.scales) == workload_.oc));
  TILESMITH_CHECK((bias != nullptr) == workload_.post.bias && (!bias || bias->size() == workload_.oc));
  if (!real) NeedBytes(output, limits);
  if (sum) {
    NeedBytes(sum->output, sum->limits);
    TILESMITH_CHECK(sum->residual.per_tensor() && sum->residual.type == output.type &&
                    sum->output.type == output.type && RoundsOnce(output, *sum));
  }
  const WeightBounds bounds = BoundWeights();
  workload_.bytes = TypesWith(bounds);

  for (int64_t o = 0; o < workload_.oc; ++o) {
    const double product = double{input.scales[0]} * ValueFor(weights.quantization.scales, o);
    const float scale = real ? 1 : this->output().scales[0];
    multipliers_.push_back(real || sum ? static_cast<float>(product / scale)
                                       : RoundingMultiplier(product / scale, RangeOf(output.type)));
    if (std::isfinite(multipliers_.back())) continue;
    RefuseConv(fmt::format("channel {} has the scale {} * {} / {}, which is no finite number", o,
                           input.scales[0], ValueFor(weights.quantization.scales, o), scale));
  }
  BoundSums(bounds);
}

bool CopiesFit(const ConvWorkload& w) {
  constexpr double kMaxBytes = 64 << 20;
  constexpr int64_t kDepthwiseChannels = 64;  // that are computed together
  return LeastSeenBytes(w, IsDepthwise(w) ? kDepthwiseChannels : w.ic / w.g) <= kMaxBytes;
}

bool RoundsOnce(const Quantization& own, const QuantizedResidual& sum) {
  constexpr double kLargestFactor = 1e30;
  const double out = sum.output.scales[0];
  return own.scales[0] < 2 * out && sum.residual.scales[0] / out <= kLargestFactor;
}

ResidualTerms ResidualTermsOf(const QuantizedConvParams& params) {
  const Quantization& residual = params.sum->residual;
  const double out = params.sum->output.scales[0], own = params.output.scales[0] / out;
  const auto factor = static_cast<float>(residual.scales[0] / out);
  const double offset = -double{factor} * (residual.zero_points[0] + FlipOf(residual.type));
  const auto limit = [&](int64_t stored) {
    return static_cast<float>(own * static_cast<double>(stored - params.output.zero_points[0]) + offset);
  };
  return {factor, static_cast<float>(offset), limit(params.limits.low), limit(params.limits.high)};
}

namespace {

// Calls visit(o, weights, zero point) for the weights of each output channel, elements of a byte.
template <typename Visit>
void ForEachChannel(const QuantizedTensor& weights, int64_t channels, const Visit& visit) {
  const auto of_type = [&]<typename T>(const T* stored) {
    const int64_t terms = weights.stored->size() / channels;
    for (int64_t o = 0; o < channels; ++o)
      visit(o, std::span(stored + o * terms, static_cast<size_t>(terms)),
            ValueFor(weights.quantization.zero_points, o));
  };
  if (weights.stored->type() == DataType::kI8) {
    of_type(weights.stored->data<int8_t>());
  } else {
    of_type(weights.stored->data<uint8_t>());
  }
}

// Instructions that every CPU has do: what memory gives is not much faster.
ByteBounds BoundOf(const uint8_t* data, int64_t count, int32_t zero) {
  return portable::BoundU8(data, count, zero);
}
ByteBounds BoundOf(const int8_t* data, int64_t count, int32_t zero) {
  return portable::BoundI8(data, count, zero);
}

}  // namespace

QuantizedConvOp::WeightBounds QuantizedConvOp::BoundWeights() const {
  constexpr size_t kPiece = 1 << 22;
  WeightBounds bounds;
  ForEachChannel(params_.weights, workload_.oc, [&](int64_t, auto weights, int32_t zero) {
    int64_t& size = bounds.sizes.emplace_back();
    for (; !weights.empty(); weights = weights.subspan(std::min(kPiece, weights.size()))) {
      const auto count = static_cast<int64_t>(std::min(kPiece, weights.size()));
      const ByteBounds piece = BoundOf(weights.data(), count, zero);
      bounds.low = std::min(bounds.low, piece.low), bounds.high = std::max(bounds.high, piece.high);
      size += piece.size;
    }
  });
  return bounds;
}

ByteTypes QuantizedConvOp::TypesWith(const WeightBounds& weights) const {
  const bool signed_bytes = weights.low >= -128 && weights.high <= 127;
  return {params_.input.type, signed_bytes ? DataType::kI8 : DataType::kU8, output().type};
}

void QuantizedConvOp::BoundSums(const WeightBounds& weights) {
  const StoredRange range = RangeOf(params_.input.type);
  const int64_t zero = params_.input.zero_points[0];
  const int64_t largest = std::max(range.high - zero, zero - range.low);
  for (int64_t o = 0; o < workload_.oc; ++o) {
    int64_t sum = params_.bias ? std::abs(int64_t{params_.bias->data<int32_t>()[o]}) : 0;
    sum += largest * weights.sizes[o];
    if (sum >= int64_t{1} << 31)
      RefuseConv(fmt::format("sums of channel {} may be as large as {}, which does not fit 32 bits", o, sum));
    largest_steps_ = std::max(largest_steps_, static_cast<double>(sum) * std::abs(multipliers_[o]));
  }
}

std::vector<int16_t> QuantizedConvOp::CenteredWeights() const {
  std::vector<int16_t> centered(static_cast<size_t>(params_.weights.stored->size()));
  int16_t* to = centered.data();
  ForEachChannel(params_.weights, workload_.oc, [&](int64_t, auto weights, int32_t zero) {
    for (const auto weight : weights) *to++ = static_cast<int16_t>(int32_t{weight} - zero);
  });
  return centered;
}

std::tuple<ConvWorkload, QuantizedConvParams, std::vector<float>, double> QuantizedConvOp::Parameters()
    const {
  QuantizedConvParams params = params_;
  params.weights.stored = nullptr;
  params.bias = nullptr;
  return {workload_, std::move(params), multipliers_, largest_steps_};
}

std::shared_ptr<const QuantizedConvOp> QuantizedConvOp::WithoutWeights() const {
  return std::make_shared<const QuantizedConvOp>(std::make_from_tuple<QuantizedConvOp>(Parameters()));
}

std::string QuantizedConvOp::Signature() const {
  return fmt::format("{} {}", Type(), WorkloadToString(workload_));
}

Shape QuantizedConvOp::InferShape(std::span<const Shape> inputs) const {
  std::vector<Shape> wanted = {workload_.input_shape()};
  if (params_.sum) wanted.push_back(workload_.output_shape());
  if (!std::ranges::equal(inputs, wanted)) {
    RefuseConv(fmt::format("{} takes {} input(s), the first {}, it got {}, the first {}", Signature(),
                           wanted.size(), ShapeToString(wanted[0]), inputs.size(),
                           inputs.empty() ? "" : ShapeToString(inputs[0])));
  }
  return workload_.output_shape();
}

DataType QuantizedConvOp::OutputType(std::span<const DataType> inputs) const {
  if (!KernelTakes(inputs)) {
    RefuseConv(fmt::format("its input is of type {} instead of {}", DataTypeName(inputs[0]),
                           DataTypeName(params_.input.type)));
  }
  return output().type;
}

std::vector<int32_t> QuantizedConvOp::SumsAt(const Tensor& input, std::span<const int64_t> elements) const {
  const ConvWorkload& w = workload_;
  const std::vector<int16_t> x = ElementsAs<int16_t>(input), weights = CenteredWeights();
  const int64_t zero = params_.input.zero_points[0], channels = w.ic / w.g;
  std::vector<int32_t> sums;
  for (const int64_t i : elements) {
    const int64_t ox = i % w.ow, oy = i / w.ow % w.oh, o = i / (w.ow * w.oh) % w.oc,
                  n = i / (w.ow * w.oh * w.oc);
    const int64_t first_channel = n * w.ic + o / (w.oc / w.g) * channels;
    int64_t sum = params_.bias ? params_.bias->data<int32_t>()[o] : 0;
    const int16_t* weight = weights.data() + o * channels * w.kh * w.kw;
    for (int64_t channel = first_channel; channel < first_channel + channels; ++channel) {
      for (int64_t row_of_kernel = 0; row_of_kernel < w.kh; ++row_of_kernel, weight += w.kw) {
        const int64_t iy = oy * w.sh - w.ph + row_of_kernel * (w.dh + 1);
        if (iy < 0 || iy >= w.ih) continue;
        const int16_t* const row = x.data() + (channel * w.ih + iy) * w.iw;
        for (int64_t j = 0; j < w.kw; ++j) {
          const int64_t ix = ox * w.sw - w.pw + j * (w.dw + 1);
          if (ix >= 0 && ix < w.iw) sum += (row[ix] - zero) * weight[j];
        }
      }
    }
    sums.push_back(static_cast<int32_t>(sum));
  }
  return sums;
}

Tensor QuantizedConvOp::ReferenceAt(std::span<const Tensor* const> inputs,
                                    std::span<const int64_t> elements) const {
  const std::vector<int32_t> sums = SumsAt(*inputs[0], elements);
  const Shape shape = {std::ssize(elements)};
  Tensor out(shape, Layout::Nchw(params_.output.type));
  const int64_t pixels = workload_.oh * workload_.ow;
  const auto multiplier = [&](int64_t i) { return multipliers_[elements[i] / pixels % workload_.oc]; };
  if (out.type() == DataType::kF32) {
    for (int64_t i = 0; i < out.size(); ++i) out.floats()[i] = static_cast<float>(sums[i]) * multiplier(i);
    return out;
  }
  const StoredRange range = RangeOf(out.type()), limits = params_.sum ? params_.sum->limits : params_.limits;
  const ResidualTerms terms = params_.sum ? ResidualTermsOf(params_) : ResidualTerms();
  const int flip = FlipOf(out.type());
  VisitType(out.type(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    for (int64_t i = 0; i < out.size(); ++i) {
      const auto sum = static_cast<float>(sums[i]);
      float steps = sum * multiplier(i);
      if (params_.sum) {
        const auto residual = static_cast<float>(inputs[1]->data<T>()[elements[i]] + flip);
        const float own = std::clamp(std::fma(sum, multiplier(i), terms.offset), terms.low, terms.high);
        steps = std::fma(residual, terms.factor, own);
      }
      const int32_t stored = QuantizedValue(steps, 1.0F, output().zero_points[0], range);
      out.data<T>()[i] = static_cast<T>(std::clamp(stored, limits.low, limits.high));
    }
  });
  return out;
}

Tensor QuantizedConvOp::Reference(std::span<const Tensor* const> inputs) const {
  std::vector<int64_t> all(static_cast<size_t>(ElementCount(workload_.output_shape())));
  std::iota(all.begin(), all.end(), int64_t{0});
  Tensor out(workload_.output_shape(), Layout::Nchw(output().type));
  CopyElements(ReferenceAt(inputs, all), 0, out, 0, out.size());
  return out;
}

double QuantizedConvOp::Flops(std::span<const Shape>) const { return workload_.flops(); }

bool QuantizedConvOp::RunsIn(const Layout& layout, std::span<const Shape>) const {
  return layout.is_nchw() || CopiesFit(workload_);
}

bool QuantizedConvOp::KernelTakes(std::span<const DataType> inputs) const {
  return inputs[0] == params_.input.type && (!params_.sum || inputs[1] == params_.sum->residual.type);
}

std::vector<SavedOp> QuantizedConvOps() { return {Saved<QuantizedConvOp>("QuantizedConv")}; }

}  // namespace tilesmith
