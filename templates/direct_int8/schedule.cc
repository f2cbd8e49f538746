#include "templates/direct_int8/schedule.h"

#include <algorithm>

#include "ops/quantize/quantized_conv_kernel.h"
#include "ops/quantize/quantized_depthwise_kernel.h"
#include "ops/quantize/quantized_depthwise_loops.h"
#include "templates/base/byte_conv.h"

namespace tilesmith::direct_int8 {
int64_t Schedule::lanes() const {
  return depthwise_by_vnni                   ? kDepthwiseLanes
         : plan.dots || plan.group_words > 0 ? plan.group_out
                                             : plan.lanes;
}
int64_t Schedule::groups() const {
  return depthwise_by_vnni ? CeilDiv(workload.oc, kDepthwiseLanes) : plan.groups;
}
int64_t Schedule::blocks() const { return depthwise_by_vnni ? 1 : plan.blocks; }

Schedule MakeSchedule(const ConvWorkload& workload, const DirectInt8Config& config, const Target& cpu) {
  return {.workload = workload,
          .in = LayoutOfBlockKnob(config.ic_block).WithType(workload.bytes->in),
          .out = LayoutOfBlockKnob(config.oc_block).WithType(workload.bytes->out),
          .cpu = cpu,
          .plan = QuantizedConvPlan(workload, cpu, config.cut),
          .depthwise_by_vnni = QuantizedDepthwiseFits(workload, cpu)};
}

TaskGrid GridOf(const Schedule& s) {
  return s.depthwise_by_vnni ? QuantizedDepthwiseGrid(s.workload, s.plan.tile_rows) : s.plan.Grid();
}

LoopFeatures FeaturesOf(const Schedule& s) {
  const WindowPlan& p = s.plan;
  const ConvWorkload& w = s.workload;
  const double out_bytes = w.bytes->out == DataType::kF32 ? sizeof(float) : 1;
  const int64_t rows = std::min(p.tile_rows, s.conv().oh), columns = std::min(p.tile_columns, s.conv().ow);
  const auto pixels = static_cast<double>(rows * columns), lanes = static_cast<double>(s.lanes());
  const double vectors = p.depthwise         ? 1
                         : p.dots            ? lanes
                         : p.group_words > 0 ? static_cast<double>(p.group_words)
                                             : 2,
               tile = static_cast<double>(p.pixels);
  const int64_t channels = p.depthwise ? s.lanes() : p.group_in;
  LoopFeatures f;
  f.flops = 2.0 * static_cast<double>(w.mb * s.groups() * s.blocks() * w.oh * w.ow) * lanes *
            static_cast<double>(s.terms());
  f.fma_per_load = p.depthwise ? 0.5 : vectors * tile / (vectors + tile);
  f.accumulators = (p.depthwise ? 2 : vectors) * tile;
  f.weight_bytes = static_cast<double>(w.oc * s.terms() * p.number_bytes);
  f.tasks = static_cast<double>(GridOf(s).tasks());
  f.task_input_bytes = static_cast<double>(p.phases() * p.RowsSeenBy(rows) * p.ColumnsSeenBy(columns)) *
                       static_cast<double>(channels);
  f.task_weight_bytes = lanes * static_cast<double>(s.terms() * p.number_bytes);
  f.task_output_bytes = pixels * lanes * out_bytes;
  f.scratch_bytes = static_cast<double>(p.ThreadBytes());
  return f;
}

std::unique_ptr<ConvKernel> BuildKernel(const Schedule& s, const Target& cpu, const ConvWeights& weights) {
  return AsConvKernel(MakeQuantizedConvKernel(ByteConvOf(s.workload, weights),
                                              {s.in, s.out, cpu, s.plan.cut(), weights.pool}));
}

}  // namespace tilesmith::direct_int8
