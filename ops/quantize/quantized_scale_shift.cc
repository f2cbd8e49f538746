#include "ops/quantize/quantized_scale_shift.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "ops/base/saved_op.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/kernels/block_kernel.h"
#include "ops/quantize/byte_loops.h"

namespace tilesmith {
namespace {

std::vector<float> FactorsOf(const QuantizedScaleShiftParams& p) {
  const double ratio = static_cast<double>(p.input ? p.input->scales[0] : 1.0F) / p.output.scales[0];
  std::vector<float> factors;
  factors.reserve(p.scale.size());
  for (const float scale : p.scale) factors.push_back(static_cast<float>(scale * ratio));
  return factors;
}

std::vector<float> TermsOf(const QuantizedScaleShiftParams& p) {
  std::vector<float> terms;
  terms.reserve(p.shift.size());
  for (const float shift : p.shift)
    terms.push_back(static_cast<float>(static_cast<double>(shift) / p.output.scales[0]));
  return terms;
}

template <typename In, typename Byte>
class ScaleShiftBytesKernel : public BlockKernel {
 public:
  ScaleShiftBytesKernel(const KernelRequest& request, const QuantizedScaleShiftParams& p,
                        const std::vector<float>& factors, const std::vector<float>& terms)
      : BlockKernel(BlockDimsOf(request.output, request.layout)),
        factors_(factors),
        terms_(terms),
        constants_{.in_zero = p.input ? p.input->zero_points[0] : 0,
                   .zero = p.output.zero_points[0],
                   .low = p.limits.low,
                   .high = p.limits.high},
        compute_(PickLoop(request.cpu.isa)) {}

  using Loop = void (*)(const In*, Byte*, int64_t, int64_t, int64_t, const ByteScaleShift&);
  static Loop PickLoop(Isa isa) {
    if constexpr (std::is_same_v<In, float>)
      return TILESMITH_DISPATCH(isa, ScaleShiftFloats<Byte>);
    else
      return TILESMITH_DISPATCH(isa, ScaleShiftBytes<Byte>);
  }

 protected:
  void RunPiece(const KernelArgs& args, const BlockPiece& piece) const override {
    Byte* const out = At<Byte>(args.output, piece);
    const int64_t used = dims().UsedLanes(piece.block), first = piece.block * dims().lanes;
    ByteScaleShift constants = constants_;
    constants.factor = factors_.data() + first;
    constants.term = terms_.data() + first;
    compute_(At<In>(args.inputs[0], piece), out, piece.pixels, used, dims().lanes, constants);
    ZeroPadding(dims(), piece, out);
  }

 private:
  const std::vector<float> factors_, terms_;
  const ByteScaleShift constants_;
  const Loop compute_;
};

template <typename Byte>
std::unique_ptr<Kernel> KernelTo(const KernelRequest& request, const QuantizedScaleShiftParams& params,
                                 const std::vector<float>& factors, const std::vector<float>& terms) {
  if (params.input)
    return std::make_unique<ScaleShiftBytesKernel<Byte, Byte>>(request, params, factors, terms);
  return std::make_unique<ScaleShiftBytesKernel<float, Byte>>(request, params, factors, terms);
}

}  // namespace

QuantizedScaleShiftOp::QuantizedScaleShiftOp(QuantizedScaleShiftParams params)
    : params_(std::move(params)), factors_(FactorsOf(params_)), terms_(TermsOf(params_)) {
  const auto& [scale, shift, input, output, limits] = params_;
  TILESMITH_CHECK(scale.size() == shift.size() && HasFiniteTerms(params_), "{} scales", scale.size());
  TILESMITH_CHECK(IsByte(output.type) && output.per_tensor());
  TILESMITH_CHECK(!input || (input->type == output.type && input->per_tensor()));
  const StoredRange range = RangeOf(output.type);
  TILESMITH_CHECK(range.low <= limits.low && limits.low <= limits.high && limits.high <= range.high);
}

OpPtr QuantizedScaleShiftOp::Of(const Op& op, const ByteForm& form) {
  const auto* scale_shift = dynamic_cast<const ScaleShiftOp*>(&op);
  if (scale_shift == nullptr) return nullptr;
  QuantizedScaleShiftParams params{scale_shift->scale(), scale_shift->shift(), {}, form.output, form.limits};
  if (!form.inputs.empty()) params.input = form.inputs[0];
  if (params.input && params.input->type != form.output.type) return nullptr;
  if (scale_shift->activation().kind != ActivationKind::kNone) {
    const auto clamped = Clamped(scale_shift->activation(), form.output, form.limits);
    if (!clamped) return nullptr;
    params.limits = *clamped;
  }
  if (!HasFiniteTerms(params)) return nullptr;
  return std::make_shared<QuantizedScaleShiftOp>(std::move(params));
}

bool QuantizedScaleShiftOp::HasFiniteTerms(const QuantizedScaleShiftParams& params) {
  const auto is_finite = [](float value) { return std::isfinite(value); };
  return std::ranges::all_of(FactorsOf(params), is_finite) && std::ranges::all_of(TermsOf(params), is_finite);
}

std::string QuantizedScaleShiftOp::Signature() const {
  return fmt::format("{} {} {}", Type(), DataTypeName(InputType()), DataTypeName(params_.output.type));
}

Shape QuantizedScaleShiftOp::InferShape(std::span<const Shape> inputs) const {
  const Shape& shape = inputs[0];
  if (shape.size() < 2 || shape[1] != static_cast<int64_t>(factors_.size()))
    throw Error(ErrorCode::kBadModel, fmt::format("{} of {} channels cannot take {}", Type(), factors_.size(),
                                                  ShapeToString(shape)));
  return shape;
}

DataType QuantizedScaleShiftOp::OutputType(std::span<const DataType> inputs) const {
  if (KernelTakes(inputs)) return params_.output.type;
  throw Error(ErrorCode::kBadModel, fmt::format("{} takes {}, it got {}", Type(), DataTypeName(InputType()),
                                                DataTypeName(inputs[0])));
}

Tensor QuantizedScaleShiftOp::Reference(std::span<const Tensor* const> inputs) const {
  const auto& [scale, shift, input, output, limits] = params_;
  const Tensor& in = *inputs[0];
  Tensor result(in.shape(), Layout::Nchw(output.type));
  const auto channels = static_cast<int64_t>(factors_.size());
  const int64_t pixels = in.size() / std::max<int64_t>(in.shape()[0] * channels, 1);
  const auto low = static_cast<float>(limits.low - output.zero_points[0]),
             high = static_cast<float>(limits.high - output.zero_points[0]);
  VisitType(output.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    for (int64_t at = 0; at < result.size(); ++at) {
      const auto c = static_cast<size_t>(at / pixels % channels);
      const float x = input ? static_cast<float>(in.data<T>()[at] - input->zero_points[0]) : in.floats()[at];
      const volatile float product = x * factors_[c];  // rounded before the sum
      const float sum = product + terms_[c], steps = std::isnan(sum) ? low : std::clamp(sum, low, high);
      const int32_t stored = static_cast<int32_t>(std::nearbyint(steps)) + output.zero_points[0];
      result.data<T>()[at] = static_cast<T>(stored);
    }
  });
  return result;
}

double QuantizedScaleShiftOp::Flops(std::span<const Shape> inputs) const {
  return 2.0 * static_cast<double>(ElementCount(inputs[0]));
}

bool QuantizedScaleShiftOp::RunsIn(const Layout& layout, std::span<const Shape> inputs) const {
  return layout.is_nchw() || inputs[0].size() <= 4;
}

std::unique_ptr<Kernel> QuantizedScaleShiftOp::MakeKernel(const KernelRequest& request) const {
  if (params_.output.type == DataType::kU8) return KernelTo<uint8_t>(request, params_, factors_, terms_);
  return KernelTo<int8_t>(request, params_, factors_, terms_);
}

std::vector<SavedOp> QuantizedScaleShiftOps() {
  return {Saved<QuantizedScaleShiftOp>("QuantizedScaleShift")};
}

}  // namespace tilesmith
