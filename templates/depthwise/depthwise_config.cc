#include "templates/depthwise/depthwise_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "templates/depthwise/depthwise_geometry.h"

namespace tilesmith::depthwise {
namespace {

// Code that outgrows the first-level instruction cache runs 10-70% slower; a little above is still worth a
// trial, all the more as edges are a part of it.
constexpr int64_t kMostCodeBytes = 48 << 10;

std::vector<int64_t> UpTo(int64_t most, std::initializer_list<int64_t> values) {
  std::vector<int64_t> kept;
  for (int64_t v : values) {
    if (v <= most) kept.push_back(v);
  }
  return kept;
}

// Up to `most`, and `most` itself and its halves.
std::vector<int64_t> Counts(int64_t most, std::initializer_list<int64_t> values) {
  std::vector<int64_t> counts = UpTo(most, values);
  for (int64_t v : {(most + 3) / 4, (most + 1) / 2, most}) counts.push_back(v);
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

std::vector<int64_t> Blocks(const ConvWorkload& w, const CpuInfo& cpu) {
  const int64_t vector = cpu.vector_floats();
  std::vector<int64_t> blocks;
  for (int64_t block : {8, 16, 32, 64}) {
    if (block % vector != 0 || (block >= 2 * w.oc && block > vector)) continue;
    blocks.push_back(block);
  }
  blocks.push_back(0);
  return blocks;
}

// Neighbouring output rows share input rows one kernel row apart, and there are two.
bool CanPair(const ConvWorkload& w) { return w.sh == 1 && w.dh == 0 && w.kh >= 2 && w.oh >= 2; }

std::string WhyInvalid(const ConvWorkload& w, const CpuInfo& cpu, const DepthwiseConfig& c) {
  if (c.row_tile > c.rows)
    return fmt::format("row_tile {} exceeds the {} rows of a task", c.row_tile, c.rows);
  if (c.balance_tiles && w.ow % c.width_tile == 0) return "balance_tiles changes nothing: tiles are even";
  if (c.pairs && c.row_tile != 2) return "pairs are row_tile 2";
  if (c.weights == Weights::kRegisters && !c.unroll && !c.pairs)
    return "weights in registers need unrolled kernel rows";
  if (c.unroll && w.kh == 1 && c.weights != Weights::kRegisters)
    return "there is one kernel row: no unrolling";
  const Geometry geometry = MakeGeometry(w, c, cpu);
  if (!PlanRegisters(geometry.rows, c.row_tile, c.width_tile).fits) {
    return fmt::format("register tile {} x {} does not fit {} registers", c.row_tile, c.width_tile,
                       cpu.vector_registers());
  }
  const int64_t code = EstimateCodeBytes(geometry.rows, geometry.codes);
  if (code > kMostCodeBytes) return fmt::format("some {} bytes of code (at most {})", code, kMostCodeBytes);
  return "";
}

}  // namespace

DepthwiseConfig ReadConfig(const Config& config) {
  DepthwiseConfig c;
  c.block = config.Get("block");
  c.row_tile = config.Get("row_tile");
  c.width_tile = config.Get("width_tile");
  c.balance_tiles = config.Get("balance_tiles") != 0;
  c.weights = static_cast<Weights>(config.Get("weights"));
  c.unroll = config.Get("unroll") != 0;
  c.pairs = config.Get("pairs") != 0;
  c.rows = config.Get("rows");
  c.vectors = config.Get("vectors");
  return c;
}

ConfigSpace DepthwiseSpace(const ConvWorkload& w, const CpuInfo& cpu) {
  const int64_t vector = cpu.vector_floats();
  const int64_t registers = cpu.vector_registers();
  std::vector<Knob> knobs = {
      {"block", Blocks(w, cpu), "x of the layout NCHW[x]c, input and output; 0 is NHWC"},
      {"row_tile", UpTo(w.oh, {1, 2, 3, 4, 5, 6, 7, 8}), "register tile: output rows"},
      {"width_tile",
       UpTo(std::min(w.ow, registers - 1),
            {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 19, 20, 24, 28}),
       "register tile: output positions"},
      {"balance_tiles", {0, 1}, "1: tiles of a row are equally wide"},
      {"weights", {0, 1, 2}, "0: all in registers, 1: a kernel row in registers, 2: memory operands"},
      {"unroll", {0, 1}, "1: kernel rows unrolled, 0: a loop (of pairs: at the image's edges)"},
      {"pairs", UpTo(CanPair(w) ? 1 : 0, {0, 1}), "1: two output rows together, with fewer multiplications"},
      {"rows", Counts(w.oh, {1, 2, 4, 7, 8, 14, 16, 28}), "output rows per task"},
      {"vectors", Counts((w.oc + vector - 1) / vector, {1, 2, 3, 4, 6, 8}), "vectors of channels per task"},
  };
  return ConfigSpace(std::move(knobs),
                     [w, cpu](const Config& config) { return WhyInvalid(w, cpu, ReadConfig(config)); });
}

Config DepthwiseDefault(const ConvWorkload& w, const CpuInfo& cpu) {
  const ConfigSpace space = DepthwiseSpace(w, cpu);
  const auto make = [&](int64_t rows, int64_t width, Weights weights, bool unroll) {
    Config config;
    config.Set("block", cpu.vector_floats());
    config.Set("row_tile", rows);
    config.Set("width_tile", width);
    config.Set("balance_tiles", 0);
    config.Set("weights", static_cast<int64_t>(weights));
    config.Set("unroll", unroll ? 1 : 0);
    config.Set("pairs", 0);
    config.Set("rows", w.oh);
    config.Set("vectors", 1);
    return config;
  };
  constexpr std::pair<Weights, bool> kModes[] = {
      {Weights::kRegisters, true}, {Weights::kRow, false}, {Weights::kMemory, false}};
  for (const auto& [weights, unroll] : kModes) {
    for (const int64_t rows : {2, 1}) {
      for (const int64_t width : {14, 10, 7, 5, 4, 3, 2, 1}) {
        if (rows * width < 4 && w.ow >= 4) continue;
        Config config = make(rows, width, weights, unroll);
        if (space.WhyInvalid(config).empty()) return config;
      }
    }
  }
  return make(1, 1, Weights::kMemory, false);
}

}  // namespace tilesmith::depthwise
