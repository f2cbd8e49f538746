#include "templates/few_outputs/schedule.h"

#include "templates/base/image_strides.h"

namespace tilesmith::few_outputs {

uint32_t Schedule::InputLanes(int64_t vector, int64_t column) const {
  uint32_t lanes = 0;
  for (int64_t lane = 0; lane < RealLanes(vector); ++lane) {
    const int64_t at = vector * config.lanes + lane - workload.pw + column * (workload.dw + 1);
    if (at >= 0 && at < workload.iw) lanes |= 1U << lane;
  }
  return lanes;
}

Schedule MakeSchedule(const ConvWorkload& workload, const FewOutputsConfig& config) {
  Schedule g;
  g.workload = Flattened(workload, config.flat_width);
  g.image_rows = workload.oh;
  g.config = config;
  const ConvWorkload& w = g.workload;
  g.in_row_bytes = w.iw * kFloatBytes;
  g.in_plane_bytes = w.ih * g.in_row_bytes;
  g.out_row_bytes = w.ow * kFloatBytes;
  g.out_plane_bytes = w.oh * g.out_row_bytes;
  // A row of vectors is cut like a row of positions: a position is then `lanes` wide and reads from its first
  // lane's first tap to its last lane's last.
  const int64_t reach = (w.kw - 1) * (w.dw + 1);
  ConvWorkload by_vector = w;
  by_vector.sw = config.lanes;
  by_vector.kw = 2;
  by_vector.dw = config.lanes - 1 + reach - 1;
  const int64_t wanted = std::min(w.iw, w.ow - w.pw + reach);
  g.tiles = CutRow(by_vector,
                   {wanted, (w.ow + config.lanes - 1) / config.lanes, config.vectors, config.balance_tiles});
  return g;
}

TaskGrid GridOf(const Schedule& g) {
  const ConvWorkload& w = g.workload;
  return {.images = w.mb,
          .channels = g.chunks(),
          .rows = g.row_blocks(),
          .channels_inner = true,
          .height = g.image_rows,
          .row_units = w.oh * w.ow / g.image_rows,
          .part_units = g.rows_per_task() * w.ow};
}

LoopFeatures FeaturesOf(const Schedule& g) {
  const ConvWorkload& w = g.workload;
  const FewOutputsConfig& c = g.config;
  constexpr double kBytes = sizeof(float);
  const int64_t taps = w.ic * w.kh * w.kw;
  const int64_t row_lanes = (w.ow + c.lanes - 1) / c.lanes * c.lanes;
  const int64_t rows = std::min(g.rows_per_task(), w.oh);
  const int64_t inputs = c.vectors * c.tile_rows;
  LoopFeatures f;
  f.flops = 2.0 * static_cast<double>(w.mb * w.oc * w.oh * row_lanes) * static_cast<double>(taps);
  f.fma_per_load = static_cast<double>(inputs * c.outputs) / static_cast<double>(inputs + c.outputs);
  f.accumulators = static_cast<double>(inputs * c.outputs);
  f.code_bytes = static_cast<double>(EstimateCodeBytes(g));
  f.weight_bytes = static_cast<double>(w.oc * taps) * kBytes;
  f.tasks = static_cast<double>(w.mb * g.chunks() * g.row_blocks());
  f.task_input_bytes = InputBytes(w, rows, w.ic);
  f.task_weight_bytes = static_cast<double>(c.outputs * taps) * kBytes;
  f.task_output_bytes = static_cast<double>(c.outputs * rows * w.ow) * kBytes;
  return f;
}

int64_t EstimateCodeBytes(const Schedule& g) {
  constexpr int64_t kLoadBytes = 11, kMaskBytes = 10, kFmaBytes = 6, kStoreBytes = 40;
  const FewOutputsConfig& c = g.config;
  const int64_t copies = c.ic_unroll + g.workload.ic % c.ic_unroll;
  int64_t bytes = 0;
  for (const TileRun& tile : g.tiles) {
    int64_t channel = 0;
    for (const InputRow& row : InputRowsOf(g.workload, c.tile_rows)) {
      const auto weights = static_cast<int64_t>(row.taps.size()) * c.outputs;
      const int64_t load = kLoadBytes + (tile.edge ? kMaskBytes : 0);
      channel += g.workload.kw * (weights * kLoadBytes + tile.width * (load + weights * kFmaBytes));
    }
    if (c.prefetch != Prefetch::kNone) channel += c.tile_rows * g.workload.sh * tile.width * kLoadBytes;
    bytes += channel * copies + c.tile_rows * tile.width * c.outputs * kStoreBytes;
  }
  return bytes;
}

}  // namespace tilesmith::few_outputs
