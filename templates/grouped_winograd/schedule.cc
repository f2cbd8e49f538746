#include "templates/grouped_winograd/schedule.h"

#include <algorithm>

#include "layouts/base/sizes.h"

namespace tilesmith::grouped_winograd {

Schedule MakeSchedule(const ConvWorkload& w, const GroupedWinogradConfig& config, int vector_floats) {
  winograd::WinogradConfig c;
  c.ic_block = config.ic_block;
  c.oc_block = config.oc_block;
  c.tile = config.tile;
  c.partition = winograd::Partition::kTileBlocks;
  c.tile_block = config.tile_block;
  Schedule g = {winograd::MakeSchedule(w, c, vector_floats), config};
  winograd::MergeProducts(g);
  // An odd number of vectors, so that the elements of a tile do not share a few cache sets.
  g.in_element = g.out_element = (config.tile_block | 1) * vector_floats;
  constexpr int64_t kLine = 64;
  const auto bytes = g.elements() * g.in_element * static_cast<int64_t>(sizeof(float));
  g.scratch_bytes = CeilDiv(bytes, kLine) * kLine;
  return g;
}

TaskGrid GridOf(const Schedule& g) { return winograd::GridOfBlocks(g, g.out_vectors); }

LoopFeatures FeaturesOf(const Schedule& g) {
  const GroupedWinogradConfig& config = g.grouped;
  constexpr double kBytes = sizeof(float), kProductTermBytes = 18;
  const int64_t per_group = g.workload.ic / g.workload.g;
  const auto channels = static_cast<double>(per_group);
  const auto elements = static_cast<double>(g.elements()), lanes = static_cast<double>(g.vector_floats);
  const auto vectors = static_cast<double>(g.out_vectors), task_tiles = static_cast<double>(g.block_tiles);
  const auto width = static_cast<double>(config.width_tile);
  LoopFeatures f;
  // A transform adds and multiplies each element of a window some `window` times along either axis.
  const double transforms = 2.0 * elements * g.window() * 2 * lanes;
  f.flops = static_cast<double>(g.tiles) * vectors * (2.0 * elements * channels * lanes + transforms);
  f.fma_per_load = width / (width + 1);
  f.accumulators = width * static_cast<double>(config.sums);
  f.code_bytes = task_tiles * channels * kProductTermBytes;
  f.weight_bytes = vectors * elements * channels * lanes * kBytes;
  const int64_t blocks = (g.tiles + g.block_tiles - 1) / g.block_tiles;
  f.tasks = vectors * static_cast<double>(blocks);
  f.task_input_bytes = task_tiles * elements * lanes * kBytes;
  f.task_weight_bytes = elements * channels * lanes * kBytes;
  f.task_output_bytes = task_tiles * static_cast<double>(g.config.tile * g.config.tile) * lanes * kBytes;
  f.scratch_bytes = static_cast<double>(g.scratch_bytes);
  return f;
}

}  // namespace tilesmith::grouped_winograd
