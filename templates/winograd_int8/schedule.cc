#include "templates/winograd_int8/schedule.h"

#include "ops/quantize/quantized_winograd_loops.h"
#include "templates/base/byte_conv.h"

namespace tilesmith::winograd_int8 {

Schedule MakeSchedule(const ConvWorkload& workload, const WinogradInt8Config& config, const Target& cpu) {
  return {.workload = workload,
          .in = LayoutOfBlockKnob(config.ic_block).WithType(workload.bytes->in),
          .out = LayoutOfBlockKnob(config.oc_block).WithType(workload.bytes->out),
          .plan = QuantizedWinogradPlan(workload, cpu, config.cut)};
}

TaskGrid GridOf(const Schedule& s) { return s.plan.Grid(); }

LoopFeatures FeaturesOf(const Schedule& s) {
  const QuantizedWinogradPlan& p = s.plan;
  const auto lanes = static_cast<double>(p.lanes), tiles = static_cast<double>(p.part_tiles()),
             tile = static_cast<double>(p.pixels), channels = static_cast<double>(p.channels);
  constexpr double kElements = kWinogradElements, kVectors = 2;
  LoopFeatures f;
  f.tasks = static_cast<double>(p.Grid().tasks());
  f.flops = 2 * f.tasks * kElements * tiles * channels * lanes;
  f.fma_per_load = kVectors * tile / (kVectors + tile);
  f.accumulators = kVectors * tile;
  f.weight_bytes = static_cast<double>(p.blocks) * kElements * channels * lanes * sizeof(int16_t);
  f.task_input_bytes = static_cast<double>(p.WindowBytes());
  f.task_weight_bytes = kElements * channels * lanes * sizeof(int16_t);
  f.task_output_bytes = 4 * tiles * lanes * (s.workload.bytes->out == DataType::kF32 ? sizeof(float) : 1);
  f.scratch_bytes = static_cast<double>(p.ThreadBytes());
  return f;
}

std::unique_ptr<ConvKernel> BuildKernel(const Schedule& s, const Target& cpu, const ConvWeights& weights) {
  return AsConvKernel(MakeQuantizedWinogradKernel(ByteConvOf(s.workload, weights),
                                                  {s.in, s.out, cpu, s.plan.cut(), weights.pool}));
}

}  // namespace tilesmith::winograd_int8
