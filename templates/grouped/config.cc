#include "templates/grouped/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "templates/base/support_checks.h"
#include "templates/grouped/lane_swaps.h"
#include "templates/grouped/register_plan.h"
#include "templates/grouped/schedule.h"

namespace tilesmith::grouped {
namespace {

constexpr int64_t kMinTapBytes = 6;  // of an input channel
constexpr int64_t kMaxChannels = 32;

// Vector widths in which groups are whole vectors or whole fractions of one, the widest first.
std::vector<int64_t> LaneCounts(const ConvWorkload& w, const Target& cpu) {
  const int64_t channels = w.ic / w.g;
  std::vector<int64_t> counts;
  for (int64_t lanes : {16, 8}) {
    if (lanes > cpu.vector_floats()) continue;
    if (lanes % channels == 0 || channels % lanes == 0) counts.push_back(lanes);
  }
  return counts;
}

std::vector<int64_t> Blocks(const ConvWorkload& w, const Target& cpu) {
  std::vector<int64_t> blocks;
  for (int64_t block : {8, 16, 32, 64}) {
    if (block % LaneCounts(w, cpu).back() == 0 && (block < 2 * w.ic || block == cpu.vector_floats()))
      blocks.push_back(block);
  }
  blocks.push_back(0);
  return blocks;
}

std::string WhyBlockIsInvalid(const ConvWorkload& w, int64_t lanes, int64_t block) {
  const int64_t channels = w.ic / w.g;
  if (block % lanes != 0) return fmt::format("a block of {} is not whole vectors of {}", block, lanes);
  if (block > 0 && channels > lanes && channels % block != 0 && block % channels != 0)
    return fmt::format("groups of {} channels straddle blocks of {}", channels, block);
  return "";
}

std::string WhyInvalid(const ConvWorkload& w, const GroupedConfig& c) {
  for (int64_t block : {c.ic_block, c.oc_block}) {
    std::string reason = WhyBlockIsInvalid(w, c.lanes, block);
    if (!reason.empty()) return reason;
  }
  const int64_t pairs = w.ic / w.g / kPairChannels;
  if (c.pairs && c.sums > pairs) return fmt::format("{} sums of {} pairs of channels", c.sums, pairs);
  if (c.sums > 1 && w.ic / w.g > c.lanes)
    return fmt::format("{} sums, but groups are more than a vector of {}", c.sums, c.lanes);
  std::string no_registers = fmt::format("register tile {} x {} with {} sums does not fit the registers",
                                         c.tile_rows, c.width_tile, c.sums);
  if (c.tile_rows * c.width_tile * c.sums > 2 * c.lanes) return no_registers;
  const Schedule g = MakeSchedule(w, c);
  const int64_t width = g.workload.ow, height = g.workload.oh;
  if (c.width_tile > width) return fmt::format("width_tile {} exceeds the row of {}", c.width_tile, width);
  if (c.tile_rows > height) return fmt::format("tile_rows {} exceeds the {} there are", c.tile_rows, height);
  if (c.row_tiles > 1 && (c.row_tiles - 1) * c.tile_rows >= height)
    return fmt::format("row_tiles {} exceeds the rows", c.row_tiles);
  if (c.balance_tiles && width % c.width_tile == 0) return "balance_tiles changes nothing: tiles are even";
  if (!PlanRegisters(g, static_cast<int>(c.width_tile), c.tile_rows).fits) return no_registers;
  if (InputRowsOf(w, c.tile_rows).size() > kMaxInputRows)
    return fmt::format("a tile of {} rows reads more than {} input rows", c.tile_rows, kMaxInputRows);
  const int64_t code = EstimateCodeBytes(g);
  if (code > kMaxCodeBytes) return fmt::format("some {} bytes of code (at most {})", code, kMaxCodeBytes);
  return "";
}

struct Tile {
  int64_t rows, width, sums;
  Hold hold;
};

// Blocks as wide as a vector.
Config MakeConfig(const ConvWorkload& w, const Target& cpu, const Tile& tile) {
  const int64_t lanes = LaneCounts(w, cpu).front();
  Config config;
  config.Set("ic_block", lanes);
  config.Set("oc_block", lanes);
  config.Set("lanes", lanes);
  config.Set("width_tile", tile.width);
  config.Set("tile_rows", tile.rows);
  config.Set("balance_tiles", 0);
  config.Set("sums", tile.sums);
  config.Set("hold", static_cast<int64_t>(tile.hold));
  config.Set("row_tiles", 1);
  config.Set("oc_inner", 0);
  config.Set("flat_width", 0);
  return config;
}

}  // namespace

GroupedConfig ReadConfig(const Config& config, const Target& cpu) {
  GroupedConfig c;
  c.ic_block = config.Get("ic_block");
  c.oc_block = config.Get("oc_block");
  c.lanes = config.Get("lanes");
  c.width_tile = config.Get("width_tile");
  c.tile_rows = config.Get("tile_rows");
  c.balance_tiles = config.Get("balance_tiles") != 0;
  c.sums = config.Get("sums");
  c.hold = static_cast<Hold>(config.Get("hold"));
  c.row_tiles = config.Get("row_tiles");
  c.oc_inner = config.Get("oc_inner") != 0;
  c.flat_width = config.Get("flat_width");
  if (config.Find("in_type")) c.types = ReadTypes(config);
  c.pairs = c.types.in == DataType::kBf16 && cpu.bf16;
  return c;
}

Support Supports(const ConvWorkload& w, const Target& cpu) {
  if (w.g == 1) return Support::No("not a grouped convolution");
  if (w.ic != w.oc) {
    return Support::No(
        fmt::format("{} input but {} output channels a group: must be equal", w.ic / w.g, w.oc / w.g));
  }
  const int64_t channels = w.ic / w.g;
  const int64_t vector = cpu.vector_floats();
  if (channels == 1) return Support::No("one channel a group is a depthwise convolution");
  if (channels > kMaxChannels)
    return Support::No(fmt::format("{} channels a group (at most {})", channels, kMaxChannels));
  if (LaneCounts(w, cpu).empty()) {
    return Support::No(
        fmt::format("groups of {} channels neither divide nor fill vectors of {}", channels, vector));
  }
  if (Support fits = FitsDisplacements(w); !fits.ok) return fits;
  if (w.kh > static_cast<int64_t>(kMaxInputRows))
    return Support::No(fmt::format("{} kernel rows (at most {})", w.kh, kMaxInputRows));
  // A lower bound, at once: telling exactly takes memory for every tap.
  const int64_t code = EdgePositions(w) * w.kh * w.kw * channels * kMinTapBytes;
  if (w.kw > kMaxCodeBytes || code > kMaxCodeBytes)
    return Support::No(fmt::format("a kernel of {}x{} makes too much code", w.kh, w.kw));
  const std::string reason = WhyInvalid(w, ReadConfig(MakeConfig(w, cpu, {1, 1, 1, Hold::kNothing}), cpu));
  return reason.empty() ? Support::Yes() : Support::No("even the smallest tile needs " + reason);
}

Support SupportsBf16(const ConvWorkload& w, const Target& cpu) {
  const int64_t channels = w.ic / w.g, vector = cpu.vector_floats();
  const bool parts = channels < vector && vector % channels == 0;
  if (!parts && !(cpu.bf16 && channels % vector == 0)) {
    return Support::No(fmt::format("groups of {} channels are no parts of a vector of {}{}", channels, vector,
                                   cpu.bf16 ? ", nor whole ones" : ""));
  }
  return Supports(w, cpu);
}

namespace {

std::vector<Knob> Knobs(const ConvWorkload& w, const Target& cpu) {
  const std::vector<int64_t> flat_widths = LongerRowWidths(w);
  const int64_t row = std::max(w.ow, *std::max_element(flat_widths.begin(), flat_widths.end()));
  const int64_t widest = std::min<int64_t>(row, cpu.vector_registers() - kEpilogueScratch);
  return {
      {"ic_block", Blocks(w, cpu), "x of the input layout NCHW[x]c; 0 is NHWC"},
      {"oc_block", Blocks(w, cpu), "x of the output layout NCHW[x]c; 0 is NHWC"},
      {"lanes", LaneCounts(w, cpu), "floats of a vector"},
      {"width_tile",
       UpTo(widest, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 19, 20, 22, 24, 28}),
       "register tile: output positions"},
      {"tile_rows", UpTo(w.oh, {1, 2, 3, 4}), "register tile: output rows"},
      {"balance_tiles", {0, 1}, "1: tiles of a row are equally wide"},
      {"sums", SumCounts(w.ic / w.g), "accumulators of an output: more save permutes of inputs"},
      {"hold", {0, 1, 2}, "in registers: 1 weights, 2 inputs, 0 neither"},
      {"row_tiles", UpTo(w.oh, {1, 2, 3, 4, 5, 7, 8, 14, 16, 28, 56}), "tiles of tile_rows rows per task"},
      {"oc_inner", {0, 1}, "1: neighbouring tasks share rows, 0: weights"},
      {"flat_width", flat_widths, "1x1: width of the rows an image is recut into; 0 keeps its own"},
  };
}

// With `types`, of a space that has such knobs.
Config DefaultIn(const ConfigSpace& space, const ConvWorkload& w, const Target& cpu,
                 const std::optional<StoredTypes>& types) {
  const auto make = [&](const Tile& tile) {
    Config config = MakeConfig(w, cpu, tile);
    if (types) SetTypes(*types, config);
    return config;
  };
  const bool wide = cpu.isa == Isa::kAvx512;
  // Two sums are as good as more where they are enough.
  for (int64_t sums : {2, 1}) {
    for (int64_t width : {28, 20, 14, 13, 12, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}) {
      for (int64_t rows : {1, 2, 3, 4}) {
        Config config = make({rows, width, sums, Hold::kWeights});
        if (sums * rows * width >= (wide ? 10 : 6) && space.IndexOf(config) &&
            space.WhyInvalid(config).empty())
          return config;
      }
    }
  }
  for (int64_t width : {9, 8, 7, 6, 5, 4, 3, 2, 1}) {
    Config config = make({1, width, 1, Hold::kNothing});
    if (space.WhyInvalid(config).empty()) return config;
  }
  return make({1, 1, 1, Hold::kNothing});
}

}  // namespace

ConfigSpace Space(const ConvWorkload& w, const Target& cpu) {
  return ConfigSpace(Knobs(w, cpu),
                     [w, cpu](const Config& config) { return WhyInvalid(w, ReadConfig(config, cpu)); });
}

ConfigSpace Bf16Space(const ConvWorkload& w, const Target& cpu) {
  std::vector<Knob> knobs = Knobs(w, cpu);
  std::ranges::find(knobs, "lanes", &Knob::name)->values = {cpu.vector_floats()};
  for (Knob& knob : TypeKnobs()) knobs.push_back(std::move(knob));
  return ConfigSpace(std::move(knobs), [w, cpu](const Config& config) -> std::string {
    const GroupedConfig c = ReadConfig(config, cpu);
    if (!c.types.narrow()) return "nothing is stored in bf16: that is the grouped template";
    return WhyInvalid(w, c);
  });
}

Config Default(const ConvWorkload& w, const Target& cpu) {
  return DefaultIn(Space(w, cpu), w, cpu, std::nullopt);
}

Config Bf16Default(const ConvWorkload& w, const Target& cpu) {
  return DefaultIn(Bf16Space(w, cpu), w, cpu, StoredTypes{DataType::kBf16, DataType::kBf16});
}

}  // namespace tilesmith::grouped
