#include "templates/int8/store.h"

#include <algorithm>
#include <cmath>

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
  const auto [factor, offset, low, high] = ResidualTermsOf(params);
  common_.sum = {.offset = offset,
                 .low = low,
                 .high = high,
                 .factor = factor,
                 .flip = FlipOf(params.sum->residual.type)};
  constexpr double kBytes = 256;  // of the residual
  common_.bounded = std::max(std::abs(low), std::abs(high)) + kBytes * factor < kMaxSteps;
}

}  // namespace tilesmith
