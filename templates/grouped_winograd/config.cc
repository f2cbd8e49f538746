#include "templates/grouped_winograd/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "templates/base/support_checks.h"
#include "templates/grouped/lane_swaps.h"
#include "templates/winograd/schedule.h"

namespace tilesmith::grouped_winograd {
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

}  // namespace tilesmith::grouped_winograd
