#include "templates/amx/x86/strip_kernel.h"
#include "templates/amx_bf16/config.h"
#include "templates/amx_bf16/copied_input.h"
#include "templates/amx_bf16/x86/bf16_strip_code.h"
#include "templates/base/window_plan.h"

namespace tilesmith::amx_bf16 {

std::unique_ptr<ConvKernel> BuildKernel(const Schedule& schedule, const Target& cpu,
                                        const ConvWeights& weights) {
  const WindowPlan& plan = schedule.plan;
  amx::StripParts parts{.name = "amx_bf16", .code = {}, .copy = nullptr, .parameters = {}};
  parts.code = amx::StripFunctions(schedule, weights.parts,
                                   [&] { return std::make_unique<Bf16StripCode>(schedule, cpu); });
  if (!schedule.as_it_is) parts.copy = std::make_unique<CopiedInput>(schedule, cpu, weights);
  const auto pack = [&](const PackedParameters::Memory& to) {
    const int64_t numbers = BlockWeightNumbers(plan), terms = plan.group_in * plan.conv.kh * plan.conv.kw;
    for (int64_t o = 0; o < plan.conv.oc; ++o) {
      const BlockLane at = BlockLaneOf(plan, o);
      auto* const packed = reinterpret_cast<uint16_t*>(to.weights) + at.block * numbers;
      PackWindowWeights(plan, weights.weights + o * terms, packed + at.lane * plan.word, Bf16Bits);
      if (weights.bias != nullptr) to.bias_floats()[at.block * plan.lanes + at.lane] = weights.bias[o];
    }
  };
  parts.parameters = PackedParameters(weights.parts, amx::ParameterSizes(plan, false), pack);
  return amx::MakeStripKernel(schedule, std::move(parts));
}

}  // namespace tilesmith::amx_bf16
