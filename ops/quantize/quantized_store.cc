#include "ops/quantize/quantized_store.h"

namespace tilesmith {

QuantizedStore::QuantizedStore(const QuantizedConvOp& op, const Layout& layout, const Target& cpu)
    : out_(op.workload().output_shape(), layout),
      lanes_(QuantizedConvLanes(cpu.isa)),
      reals_(op.params().output.type == DataType::kF32),
      sum_(op.params().sum.has_value()),
      masks_(cpu.isa == Isa::kAvx512),
      store_channel_rows_(TILESMITH_DISPATCH(cpu.isa, StoreChannelRows)) {
  common_.bounded = op.largest_steps() < kMaxSteps;
  if (!reals_) SetRange(op.params());
}

void QuantizedStore::SetRange(const QuantizedConvParams& params) {
  const StoredRange& limits = params.sum ? params.sum->limits : params.limits;
  const Quantization& output = params.sum ? params.sum->output : params.output;
  common_.flip = FlipOf(output.type);
  common_.zero = output.zero_points[0] + common_.flip;
  common_.low = limits.low + common_.flip;
  common_.high = limits.high + common_.flip;
  if (!params.sum) return;
  const Quantization& residual = params.sum->residual;
  const SumFactors factors = FactorsOf(params.output, *params.sum);
  const auto zero = static_cast<float>(params.output.zero_points[0]);
  common_.sum = {.low = static_cast<float>(params.limits.low) - zero,
                 .high = static_cast<float>(params.limits.high) - zero,
                 .own_factor = factors.own,
                 .factor = factors.residual,
                 .zero = residual.zero_points[0] + FlipOf(residual.type),
                 .flip = FlipOf(residual.type)};
  constexpr double kBytes = 256;  // to which its own result is clamped before
  common_.bounded = kBytes * (double{factors.own} + factors.residual) < kMaxSteps;
}

}  // namespace tilesmith
