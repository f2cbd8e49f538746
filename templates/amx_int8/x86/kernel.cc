#include "ops/conv/window_weights.h"
#include "ops/quantize/quantized_store.h"
#include "templates/amx/x86/strip_kernel.h"
#include "templates/amx_int8/copied_bytes.h"
#include "templates/amx_int8/schedule.h"
#include "templates/amx_int8/x86/byte_strip_code.h"
#include "templates/base/byte_conv.h"

namespace tilesmith::amx_int8 {

std::unique_ptr<ConvKernel> BuildKernel(const Schedule& schedule, const Target& cpu,
                                        const ConvWeights& weights) {
  const QuantizedConvOp& op = ByteConvOf(schedule.workload, weights);
  const WindowPlan& plan = schedule.plan;
  const int32_t zero = op.params().input.zero_points[0];
  amx::StripParts parts = amx::EmptyParts("amx_int8", plan, true);
  parts.code = std::make_unique<ByteStripCode>(schedule, QuantizedStore(op, schedule.out, cpu).common(), cpu);
  if (!schedule.as_it_is) parts.copy = std::make_unique<CopiedBytes>(schedule, cpu, zero);
  const std::vector<int16_t> centered = op.CenteredWeights();
  const int64_t numbers = BlockWeightNumbers(plan), terms = std::ssize(centered) / plan.conv.oc;
  for (int64_t o = 0; o < plan.conv.oc; ++o) {
    const BlockLane at = BlockLaneOf(plan, o);
    const std::span<const int16_t> channel = std::span(centered).subspan(o * terms, terms);
    const int64_t lane = at.block * plan.lanes + at.lane;
    const int32_t bias = op.params().bias ? op.params().bias->data<int32_t>()[o] : 0;
    static_cast<int32_t*>(parts.bias.data())[lane] = BiasWithoutZero(bias, SumOfWeights(channel), zero);
    parts.multipliers.floats()[lane] = op.multipliers()[o];
    auto* const packed = static_cast<int8_t*>(parts.weights.data()) + at.block * numbers;
    PackWindowWeights(plan, channel.data(), packed + at.lane * plan.word,
                      [](int16_t weight) { return static_cast<int8_t>(weight); });
  }
  return amx::MakeStripKernel(schedule, std::move(parts), weights.pool);
}

}  // namespace tilesmith::amx_int8
