#include "templates/depthwise/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "templates/base/conv_template.h"
#include "templates/base/schedule_template.h"
#include "templates/depthwise/row_pairs.h"
#include "templates/depthwise/schedule.h"

namespace tilesmith {
namespace depthwise {
namespace {

// `values` up to `most`, and `most` with its half and quarter.
std::vector<int64_t> Counts(int64_t most, std::initializer_list<int64_t> values) {
  std::vector<int64_t> counts = UpTo(most, values);
  for (int64_t v : {(most + 3) / 4, (most + 1) / 2, most}) counts.push_back(v);
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

// The smallest of the widths that cut a row into as many tiles.
std::vector<int64_t> Widths(int64_t row, int64_t most) {
  std::vector<int64_t> widths;
  for (int64_t width = 1; width <= std::min(row, most); ++width) {
    const int64_t tiles = (row + width - 1) / width;
    if ((row + tiles - 1) / tiles == width) widths.push_back(width);
  }
  return widths;
}

// Weights in memory load a vector for every multiplication: for few registers, and kernels too wide for any.
std::vector<int64_t> WeightPlaces(const ConvWorkload& w, const Target& cpu) {
  constexpr int64_t kMinSums = 4;
  std::vector<int64_t> places;
  if (w.kh * w.kw + kMinSums <= cpu.vector_registers()) places.push_back(0);
  if (w.kw + kMinSums <= cpu.vector_registers()) places.push_back(1);
  if (places.size() < 2 || cpu.isa != Isa::kAvx512) places.push_back(2);
  return places;
}

// Neighbouring output rows share input rows one kernel row apart, and there are two.
bool CanPair(const ConvWorkload& w) { return w.sh == 1 && w.dh == 0 && w.kh >= 2 && w.oh >= 2; }

std::string WhyInvalid(const ConvWorkload& w, const Target& cpu, const DepthwiseConfig& c) {
  if (c.row_tile > c.rows)
    return fmt::format("row_tile {} exceeds the {} rows of a task", c.row_tile, c.rows);
  if (std::string reason = WhyTileInvalid(w, cpu, c); !reason.empty()) return reason;
  const Schedule schedule = MakeSchedule(w, c, cpu);
  return WhyNotEmitted(schedule.rows, schedule.codes);
}

}  // namespace

std::vector<int64_t> DepthwiseBlocks(const ConvWorkload& w, const Target& cpu) {
  std::vector<int64_t> blocks = BlocksOfVectors(w.oc, cpu.vector_floats());
  blocks.push_back(0);
  return blocks;
}

std::vector<Knob> TileKnobs(const ConvWorkload& w, const Target& cpu, std::string_view prefix) {
  const auto name = [&](std::string_view knob) { return std::string(prefix) + std::string(knob); };
  return {
      {name("row_tile"), UpTo(w.oh, {1, 2, 3, 4, 5, 7}), "register tile: output rows"},
      {name("width_tile"), Widths(w.ow, cpu.vector_registers() - 1), "register tile: output positions"},
      {name("weights"), WeightPlaces(w, cpu),
       "0: all in registers, 1: a kernel row in registers, 2: memory operands"},
      {name("unroll"), {0, 1}, "1: kernel rows unrolled, 0: a loop (of pairs: at the image's edges)"},
      {name("pairs"), UpTo(CanPair(w) ? 1 : 0, {0, 1}),
       "1: two output rows together, with fewer multiplications"},
  };
}

DepthwiseConfig ReadTile(const Config& config, std::string_view prefix) {
  const auto get = [&](std::string_view knob) { return config.Get(std::string(prefix) + std::string(knob)); };
  DepthwiseConfig c;
  c.row_tile = get("row_tile");
  c.width_tile = get("width_tile");
  c.weights = static_cast<Weights>(get("weights"));
  c.unroll = get("unroll") != 0;
  c.pairs = get("pairs") != 0;
  return c;
}

void SetTile(const DepthwiseConfig& tile, std::string_view prefix, Config& config) {
  const auto set = [&](std::string_view knob, int64_t value) {
    config.Set(std::string(prefix) + std::string(knob), value);
  };
  set("row_tile", tile.row_tile);
  set("width_tile", tile.width_tile);
  set("weights", static_cast<int64_t>(tile.weights));
  set("unroll", tile.unroll ? 1 : 0);
  set("pairs", tile.pairs ? 1 : 0);
}

std::string WhyTileInvalid(const ConvWorkload& w, const Target& cpu, const DepthwiseConfig& c) {
  // Before anyone lists the pieces of code that so large a kernel would be cut into.
  constexpr int64_t kMinTapBytes = 6, kMaxTaps = kMaxCodeBytes / kMinTapBytes;
  const int64_t rows = c.unroll || c.pairs ? std::min(w.kh, w.ih) : 1;
  if (rows > kMaxTaps || w.kw > kMaxTaps || rows * w.kw > kMaxTaps)
    return fmt::format("a kernel of {}x{} makes more than {} bytes of code", w.kh, w.kw, kMaxCodeBytes);
  if (c.pairs && c.row_tile != 2) return "pairs are row_tile 2";
  if (c.pairs && cpu.reproducible) return kOwnOrder;
  if (c.weights == Weights::kRegisters && !c.unroll && !c.pairs)
    return "weights in registers need unrolled kernel rows";
  if (c.unroll && w.kh == 1 && c.weights != Weights::kRegisters)
    return "there is one kernel row: no unrolling";
  return "";
}

std::vector<DepthwiseConfig> DefaultTiles(const ConvWorkload& w, const Target& cpu) {
  struct Mode {
    bool pairs;
    Weights weights;
    bool unroll;
  };
  constexpr Mode kModes[] = {{true, Weights::kRegisters, true}, {true, Weights::kRow, true},
                             {true, Weights::kRow, false},      {false, Weights::kRegisters, true},
                             {false, Weights::kRow, false},     {false, Weights::kMemory, false}};
  constexpr int64_t kMinSums = 4, kMaxSums = 16;
  std::vector<int64_t> widths = Widths(w.ow, cpu.vector_registers() - 1);
  std::reverse(widths.begin(), widths.end());
  std::vector<DepthwiseConfig> tiles;
  DepthwiseConfig tile;
  for (const Mode& mode : kModes) {
    // Few registers leave pairs too narrow a tile.
    if (mode.pairs && (!CanPair(w) || cpu.isa != Isa::kAvx512 || cpu.reproducible)) continue;
    tile.pairs = mode.pairs;
    tile.weights = mode.weights;
    tile.unroll = mode.unroll;
    for (const int64_t rows : {2, 1}) {
      tile.row_tile = rows;
      for (const int64_t width : widths) {
        if (rows * width > kMaxSums || (rows * width < kMinSums && w.ow >= kMinSums)) continue;
        tile.width_tile = width;
        tiles.push_back(tile);
      }
    }
  }
  return tiles;
}

DepthwiseConfig ReadConfig(const Config& config) {
  DepthwiseConfig c = ReadTile(config, "");
  c.block = config.Get("block");
  c.rows = config.Get("rows");
  c.vectors = config.Get("vectors");
  if (config.Find("in_type")) c.types = ReadTypes(config);
  return c;
}

namespace {

std::vector<Knob> Knobs(const ConvWorkload& w, const Target& cpu) {
  const int64_t vector = cpu.vector_floats();
  std::vector<Knob> knobs = TileKnobs(w, cpu, "");
  knobs.insert(knobs.begin(),
               {"block", DepthwiseBlocks(w, cpu), "x of the layout NCHW[x]c, input and output; 0 is NHWC"});
  knobs.push_back({"rows", Counts(w.oh, {}), "output rows per task"});
  knobs.push_back(
      {"vectors", Counts((w.oc + vector - 1) / vector, {1, 2, 4, 8}), "vectors of channels per task"});
  return knobs;
}

// Completes block and rows: as few tasks as there are cores, and the first register tile that is valid.
// False where none is: then with the last one, whose reason is the workload's.
bool CompleteDefault(const ConvWorkload& w, const Target& cpu, const ConfigSpace& space, Config& config) {
  const Knob& vectors_knob = *std::ranges::find(space.knobs(), "vectors", &Knob::name);
  for (const int64_t vectors : vectors_knob.values) {
    if (vectors == 1 ||
        vectors * cpu.cores <= (w.oc + cpu.vector_floats() - 1) / cpu.vector_floats() + cpu.cores - 1)
      config.Set("vectors", vectors);
  }
  std::vector<DepthwiseConfig> tiles = DefaultTiles(w, cpu);
  for (DepthwiseConfig& tile : tiles) {
    tile.block = config.Get("block"), tile.rows = config.Get("rows"), tile.vectors = config.Get("vectors");
    if (!WhyInvalid(w, cpu, tile).empty()) continue;
    SetTile(tile, "", config);
    if (space.WhyInvalid(config).empty()) return true;
  }
  SetTile(tiles.empty() ? DepthwiseConfig() : tiles.back(), "", config);
  return false;
}

// In blocks of the vector's width.
Config WholeRows(const ConvWorkload& w, const Target& cpu) {
  Config config;
  config.Set("block", cpu.vector_floats());
  config.Set("rows", w.oh);
  return config;
}

Support Supports(const ConvWorkload& w, const Target&) {
  if (w.g != w.ic) return Support::No(fmt::format("groups of {} input channels, not 1", w.ic / w.g));
  if (w.oc != w.g) return Support::No(fmt::format("{} output channels per input channel, not 1", w.oc / w.g));
  return FitsDisplacements(w);
}

ConfigSpace Space(const ConvWorkload& w, const Target& cpu) {
  return ConfigSpace(Knobs(w, cpu),
                     [w, cpu](const Config& config) { return WhyInvalid(w, cpu, ReadConfig(config)); });
}

// depthwise_bf16 supports the same workloads, and stores the input, the output or both in bf16.
ConfigSpace Bf16Space(const ConvWorkload& w, const Target& cpu) {
  std::vector<Knob> knobs = Knobs(w, cpu);
  for (Knob& knob : TypeKnobs()) knobs.push_back(std::move(knob));
  return ConfigSpace(std::move(knobs), [w, cpu](const Config& config) -> std::string {
    const DepthwiseConfig c = ReadConfig(config);
    if (!c.types.narrow()) return "nothing is stored in bf16: that is the depthwise template";
    return WhyInvalid(w, cpu, c);
  });
}

// A config without tuning: the largest tile that fits the registers, vector-width blocks. Invalid only when
// the kernel is too large for every config.
Config Default(const ConvWorkload& w, const Target& cpu) {
  Config config = WholeRows(w, cpu);
  CompleteDefault(w, cpu, Space(w, cpu), config);
  return config;
}

Config Bf16Default(const ConvWorkload& w, const Target& cpu) {
  Config config = WholeRows(w, cpu);
  SetTypes({DataType::kBf16, DataType::kBf16}, config);
  CompleteDefault(w, cpu, Bf16Space(w, cpu), config);
  return config;
}

// As in ConvTemplate: a part of the rows for each core, or quarters of them.
std::optional<Config> RowsDefault(const ConvWorkload& w, const Target& cpu) {
  Config config;
  config.Set("block", 0);
  config.Set("rows", cpu.cores > 2 ? (w.oh + 3) / 4 : (w.oh + 1) / 2);  // what the knob has
  if (!CompleteDefault(w, cpu, Space(w, cpu), config)) return std::nullopt;
  return config;
}

double ErrorFactor(const ConvWorkload&, const Config& config) {
  return config.Get("pairs") != 0 ? kPairErrorFactor : 1;
}

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return MakeSchedule(w, ReadConfig(config), cpu);
}

}  // namespace
}  // namespace depthwise

const ConvTemplate& DepthwiseBf16Template() {
  static const GeneratedTemplate<depthwise::Schedule> instance({.name = "depthwise_bf16",
                                                                .type = DataType::kBf16,
                                                                .supports = depthwise::Supports,
                                                                .preset_decides = true,
                                                                .space = depthwise::Bf16Space,
                                                                .preset = depthwise::Bf16Default,
                                                                .read = depthwise::ReadSchedule,
                                                                .shifts_blocks = true,
                                                                .layout_knobs = {"block"},
                                                                .type_knobs = {"in_type", "out_type"},
                                                                .error_factor = depthwise::ErrorFactor});
  return instance;
}

const ConvTemplate& DepthwiseTemplate() {
  static const GeneratedTemplate<depthwise::Schedule> instance({.name = "depthwise",
                                                                .supports = depthwise::Supports,
                                                                .preset_decides = true,
                                                                .space = depthwise::Space,
                                                                .preset = depthwise::Default,
                                                                .rows_preset = depthwise::RowsDefault,
                                                                .read = depthwise::ReadSchedule,
                                                                .shifts_blocks = true,
                                                                .layout_knobs = {"block"},
                                                                .error_factor = depthwise::ErrorFactor});
  return instance;
}

}  // namespace tilesmith
