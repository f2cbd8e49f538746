#include "templates/portable/schedule.h"

#include <algorithm>

#include "templates/portable/tiles.h"

namespace tilesmith::portable {

Schedule MakeSchedule(const ConvWorkload& workload, const PortableConfig& config, int vector_floats) {
  return {workload, config, LayoutOfBlockKnob(config.ic_block), LayoutOfBlockKnob(config.oc_block),
          vector_floats};
}

bool IsDepthwise(const ConvWorkload& workload, int64_t in_block, int64_t out_block) {
  return workload.g == workload.ic && workload.g == workload.oc && in_block == out_block && in_block >= 8;
}

LoopFeatures FeaturesOf(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  const PortableConfig& c = s.config;
  constexpr double kBytes = sizeof(float);
  const int64_t rows = std::min(c.rows, w.oh), tile = c.ow_tile, lanes = s.vector_floats;
  const auto round_up = [&](int64_t n) { return (n + lanes - 1) / lanes * lanes; };
  const int64_t outputs = c.over_width ? w.oc * round_up(w.ow) : round_up(w.oc) * w.ow;
  const int64_t taps = w.ic / w.g * w.kh * w.kw;
  const auto vectors = static_cast<double>(kPortableLanes) / static_cast<double>(lanes);
  LoopFeatures f;
  f.flops = 2.0 * static_cast<double>(w.mb * w.oh * outputs) * static_cast<double>(taps);
  f.accumulators = c.over_width ? 1 : vectors * static_cast<double>(tile);
  f.fma_per_load = c.over_width ? 1 : f.accumulators / (vectors + static_cast<double>(tile));
  f.weight_bytes = static_cast<double>(w.oc * taps) * kBytes;
  f.tasks = static_cast<double>(w.mb * ((w.oh + rows - 1) / rows));
  f.task_input_bytes = InputBytes(w, rows, w.ic);
  f.task_weight_bytes = f.weight_bytes;
  f.task_output_bytes = static_cast<double>(rows * w.ow * w.oc) * kBytes;
  if (c.over_width) f.scratch_bytes = static_cast<double>(PlaneScratchFloats(w, rows)) * kBytes;
  return f;
}

}  // namespace tilesmith::portable
