#include "templates/grouped/schedule.h"

#include <map>

#include "templates/base/conv_template.h"

namespace tilesmith::grouped {
namespace {

Spread SpreadOf(int64_t channels, int vector_floats, int64_t sums, bool pairs) {
  const bool whole = channels % vector_floats == 0 && sums == 1;
  if (pairs) return whole ? Spread::kBroadcast : Spread::kIndex;
  if (sums > 1) return Spread::kSwaps;
  if (whole) return Spread::kBroadcast;
  return channels == 2 ? Spread::kPairs : channels == 4 ? Spread::kQuads : Spread::kIndex;
}

}  // namespace

Schedule MakeSchedule(const ConvWorkload& workload, const GroupedConfig& config) {
  Schedule g;
  g.workload = Flattened(workload, config.flat_width);
  g.image_rows = workload.oh;
  const ConvWorkload& w = g.workload;
  g.config = config;
  const auto vector_floats = static_cast<int>(config.lanes);
  g.vector_floats = vector_floats;
  g.channels = w.ic / w.g;
  g.spread = SpreadOf(g.channels, vector_floats, config.sums, config.pairs);
  g.in_layout = LayoutOfBlockKnob(config.ic_block).WithType(config.types.in);
  g.out_layout = LayoutOfBlockKnob(config.oc_block).WithType(config.types.out);
  g.in = ImageStrides(g.in_layout, w.ic, w.ih, w.iw);
  g.out = ImageStrides(g.out_layout, w.oc, w.oh, w.ow);
  g.tiles = CutRow(w, {w.iw, w.ow, config.width_tile, config.balance_tiles});
  g.vectors = (w.oc + vector_floats - 1) / vector_floats;
  g.partial_lanes = static_cast<int>(w.oc % vector_floats);
  if (!g.out_layout.is_nhwc()) g.zero_vectors = g.out_layout.PaddedChannels(w.oc) / vector_floats - g.vectors;
  return g;
}

int64_t Schedule::FirstInput(int64_t vector) const {
  const int64_t channel = vector * vector_floats;
  return spread == Spread::kBroadcast ? channel / channels * channels : channel;
}

std::vector<InputColumn> InputColumnsOf(const ConvWorkload& w, const TileRun& tile) {
  std::map<int64_t, InputColumn> columns;
  for (int position = 0; position < tile.width; ++position) {
    for (int kernel_column = 0; kernel_column < w.kw; ++kernel_column) {
      const int64_t offset = position * w.sw + kernel_column * (w.dw + 1);
      const int64_t absolute = tile.first * w.sw - w.pw + offset;
      if (tile.edge && (absolute < 0 || absolute >= w.iw)) continue;
      InputColumn& column = columns[offset];
      column.offset = offset;
      column.taps.push_back({position, kernel_column});
    }
  }
  std::vector<InputColumn> ascending;
  ascending.reserve(columns.size());
  for (auto& [offset, column] : columns) ascending.push_back(std::move(column));
  return ascending;
}

TaskGrid GridOf(const Schedule& g) {
  const ConvWorkload& w = g.workload;
  return {.images = w.mb,
          .channels = g.vectors,
          .rows = g.row_blocks(),
          .channels_inner = g.config.oc_inner,
          .height = g.image_rows,
          .row_units = w.oh * w.ow / g.image_rows,
          .part_units = g.rows_per_task() * w.ow};
}

LoopFeatures FeaturesOf(const Schedule& g) {
  const ConvWorkload& w = g.workload;
  const GroupedConfig& c = g.config;
  constexpr double kBytes = sizeof(float);
  const int64_t taps = g.channels * w.kh * w.kw, weights = g.terms() * w.kh * w.kw;
  const auto lanes = static_cast<double>(g.vectors * g.vector_floats);
  const int64_t tile = c.width_tile * c.tile_rows;
  const int64_t columns =
      std::min(c.width_tile * w.kw, (c.width_tile - 1) * w.sw + (w.kw - 1) * (w.dw + 1) + 1);
  const int64_t weight_loads = (c.hold == Hold::kNothing ? tile : 1) * w.kw * c.sums;
  const int64_t loads = columns * c.tile_rows + weight_loads;
  const auto rows = static_cast<double>(std::min(g.rows_per_task(), w.oh));
  LoopFeatures f;
  f.flops = 2.0 * lanes * static_cast<double>(w.mb * w.oh * w.ow) * static_cast<double>(taps);
  f.fma_per_load = static_cast<double>(tile * w.kw * c.sums) / static_cast<double>(loads);
  f.accumulators = static_cast<double>(tile * c.sums);
  f.code_bytes = static_cast<double>(EstimateCodeBytes(g));
  f.weight_bytes = lanes * static_cast<double>(weights) * kBytes;
  f.tasks = static_cast<double>(w.mb * g.vectors * g.row_blocks());
  f.task_input_bytes = InputBytes(w, std::min(g.rows_per_task(), w.oh), g.vector_floats) *
                       static_cast<double>(g.in.element_bytes) / kBytes;
  f.task_weight_bytes = static_cast<double>(g.vector_floats * weights) * kBytes;
  f.task_output_bytes = rows * static_cast<double>(w.ow * g.vector_floats * g.out.element_bytes);
  return f;
}

int64_t EstimateCodeBytes(const Schedule& g) {
  constexpr int64_t kLoadBytes = 11, kFmaBytes = 6, kMemoryFmaBytes = 9, kStoreBytes = 32, kSumBytes = 20;
  const bool from_memory = g.config.hold == Hold::kNothing;
  const int64_t fma_bytes = from_memory ? kMemoryFmaBytes : kFmaBytes;
  const std::vector<InputRow> rows = InputRowsOf(g.workload, g.config.tile_rows);
  int64_t bytes = 0;
  for (const TileRun& tile : g.tiles) {
    const auto columns = static_cast<int64_t>(InputColumnsOf(g.workload, tile).size());
    for (const InputRow& row : rows) {
      const auto taps = static_cast<int64_t>(row.taps.size()) * g.workload.kw;
      const int64_t weights = from_memory ? 0 : taps * kLoadBytes;
      bytes += g.terms() * (weights + taps * tile.width * fma_bytes) +
               g.spreads() * columns * (g.config.pairs ? 2 : 1) * kLoadBytes;
    }
    bytes += g.config.tile_rows * tile.width * (kStoreBytes + (g.config.sums - 1) * kSumBytes);
  }
  return bytes;
}

}  // namespace tilesmith::grouped
