#include "templates/grouped/space.h"

#include <fmt/format.h>

#include <algorithm>

#include "templates/grouped/geometry.h"
#include "templates/grouped/register_plan.h"

namespace tilesmith::grouped {
namespace {

// Code that outgrows the first-level instruction cache is slow; a little above is still worth a trial.
constexpr int64_t kMostCodeBytes = 48 << 10;
// Displacements and row strides are 32-bit in the generated code.
constexpr int64_t kMostImageBytes = 1LL << 30;
// Input rows of a tile are bits of a word.
constexpr size_t kMostInputRows = 64;
constexpr int64_t kMostChannels = 32;

std::vector<int64_t> Blocks(const ConvWorkload& w, const CpuInfo& cpu) {
  const int64_t vector = cpu.vector_floats();
  const int64_t per_group = w.ic / w.g;
  std::vector<int64_t> blocks;
  for (int64_t block : {vector, 2 * vector, 4 * vector}) {
    if (block >= 2 * w.ic && block > vector) continue;
    // Groups of several vectors must lie inside a block, or fill blocks.
    if (per_group > vector && per_group % block != 0 && block % per_group != 0) continue;
    blocks.push_back(block);
  }
  blocks.push_back(0);
  return blocks;
}

std::string WhyInvalid(const ConvWorkload& w, const CpuInfo& cpu, const GroupedConfig& c) {
  if (c.width_tile > w.ow) return fmt::format("width_tile {} exceeds the row of {}", c.width_tile, w.ow);
  if (c.tile_rows > w.oh) return fmt::format("tile_rows {} exceeds the {} there are", c.tile_rows, w.oh);
  if (c.row_tiles > 1 && (c.row_tiles - 1) * c.tile_rows >= w.oh)
    return fmt::format("row_tiles {} exceeds the rows", c.row_tiles);
  if (c.balance_tiles && w.ow % c.width_tile == 0) return "balance_tiles changes nothing: tiles are even";
  const Geometry g = MakeGeometry(w, c, cpu.vector_floats());
  if (!PlanRegisters(g, static_cast<int>(c.width_tile), c.tile_rows, cpu.vector_registers()).fits) {
    return fmt::format("register tile {} x {} does not fit {} registers", c.tile_rows, c.width_tile,
                       cpu.vector_registers());
  }
  if (InputRowsOf(w, c.tile_rows).size() > kMostInputRows)
    return fmt::format("a tile of {} rows reads more than {} input rows", c.tile_rows, kMostInputRows);
  const int64_t code = EstimateCodeBytes(g);
  if (code > kMostCodeBytes) return fmt::format("some {} bytes of code (at most {})", code, kMostCodeBytes);
  return "";
}

Config MakeConfig(const CpuInfo& cpu, int64_t rows, int64_t width, bool held) {
  Config config;
  config.Set("ic_block", cpu.vector_floats());
  config.Set("oc_block", cpu.vector_floats());
  config.Set("width_tile", width);
  config.Set("tile_rows", rows);
  config.Set("balance_tiles", 0);
  config.Set("held_weights", held ? 1 : 0);
  config.Set("row_tiles", 1);
  config.Set("oc_inner", 0);
  return config;
}

// The block of a vector's width is not there for groups of one and a half vectors.
Config WithBlocks(Config config, const std::vector<int64_t>& blocks) {
  config.Set("ic_block", blocks.front());
  config.Set("oc_block", blocks.front());
  return config;
}

}  // namespace

Support WhatIsSupported(const ConvWorkload& w, const CpuInfo& cpu) {
  if (const Support unfused = SupportsUnfused(w); !unfused.ok) return unfused;
  if (cpu.isa == Isa::kPortable)
    return Support::No("generates code for AVX2 or AVX-512, this CPU has neither");
  if (w.g == 1) return Support::No("not a grouped convolution");
  if (w.ic != w.oc) {
    return Support::No(
        fmt::format("{} input but {} output channels a group: must be equal", w.ic / w.g, w.oc / w.g));
  }
  const int64_t channels = w.ic / w.g;
  const int64_t vector = cpu.vector_floats();
  if (channels == 1) return Support::No("one channel a group is a depthwise convolution");
  if (channels > kMostChannels)
    return Support::No(fmt::format("{} channels a group (at most {})", channels, kMostChannels));
  if (vector % channels != 0 && channels % vector != 0) {
    return Support::No(
        fmt::format("groups of {} channels neither divide nor fill vectors of {}", channels, vector));
  }
  const int64_t image_floats = std::max(w.oh * w.ow, w.ih * w.iw) * (w.ic + 4 * vector);
  if (image_floats * static_cast<int64_t>(sizeof(float)) > kMostImageBytes)
    return Support::No(fmt::format("an image larger than {} MiB", kMostImageBytes >> 20));
  const Config smallest = WithBlocks(MakeConfig(cpu, 1, 1, false), Blocks(w, cpu));
  const std::string reason = WhyInvalid(w, cpu, ReadConfig(smallest));
  return reason.empty() ? Support::Yes() : Support::No("even the smallest tile needs " + reason);
}

ConfigSpace Space(const ConvWorkload& w, const CpuInfo& cpu) {
  const auto up_to = [](int64_t most, std::initializer_list<int64_t> values) {
    std::vector<int64_t> kept;
    std::copy_if(values.begin(), values.end(), std::back_inserter(kept),
                 [&](int64_t v) { return v <= most; });
    return kept;
  };
  const int64_t widest = std::min<int64_t>(w.ow, cpu.vector_registers() - kEpilogueScratch);
  std::vector<Knob> knobs = {
      {"ic_block", Blocks(w, cpu), "x of the input layout NCHW[x]c; 0 is NHWC"},
      {"oc_block", Blocks(w, cpu), "x of the output layout NCHW[x]c; 0 is NHWC"},
      {"width_tile",
       up_to(widest, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 19, 20, 22, 24, 28}),
       "register tile: output positions"},
      {"tile_rows", up_to(w.oh, {1, 2, 3, 4}), "register tile: output rows"},
      {"balance_tiles", {0, 1}, "1: tiles of a row are equally wide"},
      {"held_weights", {0, 1}, "1: weights in registers, 0: memory operands"},
      {"row_tiles", up_to(w.oh, {1, 2, 3, 4, 5, 7, 8, 14, 16, 28, 56}), "tiles of tile_rows rows per task"},
      {"oc_inner", {0, 1}, "1: neighbouring tasks share rows, 0: weights"},
  };
  return ConfigSpace(std::move(knobs),
                     [w, cpu](const Config& config) { return WhyInvalid(w, cpu, ReadConfig(config)); });
}

Config Default(const ConvWorkload& w, const CpuInfo& cpu) {
  const ConfigSpace space = Space(w, cpu);
  const std::vector<int64_t> blocks = Blocks(w, cpu);
  const bool wide = cpu.isa == Isa::kAvx512;
  for (int64_t width : {28, 20, 14, 13, 12, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}) {
    for (int64_t rows : {1, 2, 3, 4}) {
      const Config config = WithBlocks(MakeConfig(cpu, rows, width, true), blocks);
      if (rows * width >= (wide ? 10 : 6) && space.WhyInvalid(config).empty()) return config;
    }
  }
  for (int64_t width : {9, 8, 7, 6, 5, 4, 3, 2, 1}) {
    const Config config = WithBlocks(MakeConfig(cpu, 1, width, false), blocks);
    if (space.WhyInvalid(config).empty()) return config;
  }
  return WithBlocks(MakeConfig(cpu, 1, 1, false), blocks);
}

}  // namespace tilesmith::grouped
