#include "templates/grouped_winograd/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "layouts/base/sizes.h"
#include "templates/base/conv_template.h"
#include "templates/base/schedule_template.h"
#include "templates/grouped/lane_swaps.h"
#include "templates/winograd/schedule.h"

namespace tilesmith {
namespace grouped_winograd {

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

LoopNest NestOf(const Schedule& g) {
  const GroupedWinogradConfig& c = g.grouped;
  const ConvWorkload& w = g.workload;
  const int64_t lanes = g.vector_floats, channels = w.ic / w.g;
  const int64_t width = std::min(c.width_tile, g.block_tiles);
  LoopNest nest;
  nest.tasks = {LoopOver("c", g.out_vectors * lanes, lanes, LoopKind::kTasks, "several groups a vector"),
                LoopOver("tiles", g.tiles, g.block_tiles, LoopKind::kTasks,
                         fmt::format("blocks of {0} {1}x{1} tiles in scratch", g.block_tiles, c.tile))};
  const auto transform = [&](std::string title, std::string body) {
    LoopPart part = {std::move(title), {}, std::move(body), 0};
    part.loops = {LoopOver("tiles", g.block_tiles, 1, LoopKind::kLoop),
                  LoopOver("c", lanes, 1, LoopKind::kVector)};
    return part;
  };
  LoopPart products = {"multiply: groups in lane, for each element xi of the windows", {}, "", 1};
  products.loops = {LoopOver("xi", g.elements(), 1, LoopKind::kLoop),
                    LoopOver("tiles", g.block_tiles, width, LoopKind::kUnrolled),
                    LoopOver("ic", channels, 1, LoopKind::kUnrolled, "of the group"),
                    LoopOver("tiles", width, 1, LoopKind::kUnrolled, "register tile"),
                    LoopOver("c", lanes, 1, LoopKind::kVector)};
  products.body = "sum += weights * input, permuted within its groups";
  products.covers = static_cast<double>(c.tile * c.tile * w.kh * w.kw) / static_cast<double>(g.elements());
  nest.parts = {transform(fmt::format("transform the input: windows of {0}x{0}", g.window()),
                          "V[xi] = elements of the transformed window"),
                std::move(products),
                transform("transform back", fmt::format("{0}x{0} outputs = transformed sums", c.tile))};
  const auto vector_bytes = static_cast<double>(lanes) * sizeof(float);
  nest.tile_input_bytes = nest.tile_output_bytes = static_cast<double>(width) * vector_bytes;
  nest.tile_weight_bytes = static_cast<double>(channels) * vector_bytes;
  return nest;
}

namespace {

constexpr int64_t kMaxBlock = 64;  // tiles; more would leave the second-level cache

std::vector<int64_t> Blocks(int64_t channels, int64_t vector) {
  std::vector<int64_t> blocks = BlocksOfVectors(channels, vector);
  if (channels % vector == 0) blocks.push_back(0);
  return blocks;
}

std::vector<int64_t> TileBlocks(const ConvWorkload& w) {
  std::set<int64_t> values = {1};
  const int64_t most = std::min(kMaxBlock, winograd::CountTiles(w, 2));
  for (int64_t block : {2, 3, 4, 5, 6, 7, 8, 10, 12, 13, 14, 16, 20, 24, 28, 32, 42, 49, 56, 64}) {
    if (block <= most) values.insert(block);
  }
  return {values.begin(), values.end()};
}

std::string WhyInvalid(const ConvWorkload& w, const Target& cpu, const GroupedWinogradConfig& c) {
  const int64_t tiles = winograd::CountTiles(w, c.tile);
  if (c.tile_block > tiles) return fmt::format("tile_block {} exceeds the {} tiles", c.tile_block, tiles);
  if (c.width_tile > c.tile_block) return fmt::format("width_tile {} exceeds the block", c.width_tile);
  const int64_t registers = (c.width_tile + 1) * c.sums + kBesideSums;
  if (registers > cpu.vector_registers()) {
    return fmt::format("width_tile {} with {} sums takes {} registers of {}", c.width_tile, c.sums, registers,
                       cpu.vector_registers());
  }
  return "";
}

Config MakeConfig(const Target& cpu, const GroupedWinogradConfig& c) {
  Config config;
  config.Set("ic_block", cpu.vector_floats());
  config.Set("oc_block", cpu.vector_floats());
  config.Set("tile", c.tile);
  config.Set("tile_block", c.tile_block);
  config.Set("width_tile", c.width_tile);
  config.Set("sums", c.sums);
  return config;
}

Support Supports(const ConvWorkload& w, const Target& cpu) {
  if (w.g == 1) return Support::No("not a grouped convolution");
  if (w.kh != 3 || w.kw != 3) return Support::No(fmt::format("a {}x{} kernel, not 3x3", w.kh, w.kw));
  if (w.sh != w.sw || w.sh > 2) return Support::No(fmt::format("stride {}x{}, neither 1 nor 2", w.sh, w.sw));
  if (w.dh != 0 || w.dw != 0) return Support::No("a dilated kernel");
  if (w.ic != w.oc) {
    return Support::No(
        fmt::format("{} input but {} output channels a group: must be equal", w.ic / w.g, w.oc / w.g));
  }
  const int64_t channels = w.ic / w.g, vector = cpu.vector_floats();
  if (channels == 1) return Support::No("one channel a group is a depthwise convolution");
  if (vector % channels != 0)
    return Support::No(fmt::format("groups of {} channels do not divide vectors of {}", channels, vector));
  return FitsDisplacements(w);
}

ConfigSpace Space(const ConvWorkload& w, const Target& cpu) {
  const std::vector<int64_t> blocks = Blocks(w.ic, cpu.vector_floats());
  std::vector<int64_t> tile_blocks = TileBlocks(w), widths;
  for (int64_t width : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 20, 24, 28}) {
    if (width <= tile_blocks.back()) widths.push_back(width);
  }
  std::vector<Knob> knobs = {
      {"ic_block", blocks, "x of the input layout NCHW[x]c; 0 is NHWC"},
      {"oc_block", blocks, "x of the output layout NCHW[x]c; 0 is NHWC"},
      {"tile", winograd::TileValues(w), "outputs of a tile along each axis: F(tile x tile, 3 x 3)"},
      {"tile_block", std::move(tile_blocks), "tiles per task"},
      {"width_tile", std::move(widths), "register tile of the products: tiles"},
      {"sums", grouped::SumCounts(w.ic / w.g), "accumulators of a product: more save permutes of inputs"},
  };
  return ConfigSpace(std::move(knobs),
                     [w, cpu](const Config& config) { return WhyInvalid(w, cpu, ReadConfig(config)); });
}

// A config without tuning.
Config Default(const ConvWorkload& w, const Target& cpu) {
  const ConfigSpace space = Space(w, cpu);
  for (int64_t tile : {4, 2}) {
    for (int64_t block : {14, 7, 4, 2, 1}) {
      const int64_t width = std::min<int64_t>(block, cpu.isa == Isa::kAvx512 ? 14 : 7);
      Config config = MakeConfig(cpu, {.tile = tile, .tile_block = block, .width_tile = width});
      if (space.IndexOf(config) && space.WhyInvalid(config).empty()) return config;
    }
  }
  return MakeConfig(cpu, {.tile = 2, .tile_block = 1, .width_tile = 1});
}

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return MakeSchedule(w, ReadConfig(config), cpu.vector_floats());
}

}  // namespace

GroupedWinogradConfig ReadConfig(const Config& config) {
  GroupedWinogradConfig c;
  c.ic_block = config.Get("ic_block");
  c.oc_block = config.Get("oc_block");
  c.tile = config.Get("tile");
  c.tile_block = config.Get("tile_block");
  c.width_tile = config.Get("width_tile");
  c.sums = config.Get("sums");
  return c;
}

}  // namespace grouped_winograd

const ConvTemplate& GroupedWinogradTemplate() {
  static const X86Template<grouped_winograd::Schedule> instance({.name = "grouped_winograd",
                                                                 .supports = grouped_winograd::Supports,
                                                                 .space = grouped_winograd::Space,
                                                                 .preset = grouped_winograd::Default,
                                                                 .read = grouped_winograd::ReadSchedule,
                                                                 .shifts_blocks = true,
                                                                 .order = Order::kOwn,
                                                                 .error_factor = winograd::ErrorFactor});
  return instance;
}

}  // namespace tilesmith
