#include "templates/grouped/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "templates/base/conv_template.h"
#include "templates/base/schedule_template.h"
#include "templates/grouped/lane_swaps.h"

namespace tilesmith {
namespace grouped {
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

namespace {

const char* BodyOf(Spread spread, bool pairs) {
  switch (spread) {
    case Spread::kPairs:
    case Spread::kQuads:
      return "sum += weights * input, permuted within its groups";
    case Spread::kIndex:
      return pairs ? "sum += pairs of weights * pairs of input (bf16), permuted by an index register"
                   : "sum += weights * input, permuted by an index register";
    case Spread::kBroadcast:
      return pairs ? "sum += pairs of weights * pairs of input (bf16), broadcast"
                   : "sum += weights * input, broadcast";
    case Spread::kSwaps:
      return "sum += weights * input; the lanes of the sums are swapped in the end";
  }
  return "";
}

const char* HoldText(Hold hold) {
  switch (hold) {
    case Hold::kNothing:
      return "weights are operands of the FMAs";
    case Hold::kWeights:
      return "weights in registers";
    case Hold::kInputs:
      return "inputs in registers";
  }
  return "";
}

}  // namespace

LoopNest NestOf(const Schedule& g) {
  const ConvWorkload& w = g.workload;
  const GroupedConfig& c = g.config;
  const int64_t lanes = g.vector_floats, width = std::min(c.width_tile, w.ow), step = g.step_channels();
  const Loop vectors = LoopOver("oc", g.vectors * lanes, lanes, LoopKind::kTasks, "several groups a vector");
  const Loop rows = LoopOver("oh", w.oh, g.rows_per_task(), LoopKind::kTasks, "output rows of a task");
  LoopNest nest;
  nest.tasks = {LoopOver("mb", w.mb, 1, LoopKind::kTasks), c.oc_inner ? rows : vectors,
                c.oc_inner ? vectors : rows};
  LoopPart part;
  part.loops = {LoopOver("oh", g.rows_per_task(), c.tile_rows, LoopKind::kLoop),
                LoopOver("ow", w.ow, width, LoopKind::kLoop, "register tiles"),
                LoopOver("ic", g.channels, c.sums * step, LoopKind::kUnrolled, "of the group"),
                LoopOver("kh", w.kh, 1, LoopKind::kUnrolled),
                LoopOver("kw", w.kw, 1, LoopKind::kUnrolled, HoldText(c.hold)),
                LoopOver("ic", c.sums * step, step, LoopKind::kUnrolled, "register tile: sums of an output"),
                LoopOver("oh", c.tile_rows, 1, LoopKind::kUnrolled, "register tile: rows"),
                LoopOver("ow", width, 1, LoopKind::kUnrolled, "register tile: positions"),
                LoopOver("oc", lanes, 1, LoopKind::kVector)};
  part.body = BodyOf(g.spread, c.pairs);
  nest.parts = {std::move(part)};
  const int64_t input_rows = std::min(w.ih, (c.tile_rows - 1) * w.sh + (w.kh - 1) * (w.dh + 1) + 1);
  const int64_t columns = std::min(w.iw, (width - 1) * w.sw + (w.kw - 1) * (w.dw + 1) + 1);
  nest.tile_input_bytes = static_cast<double>(input_rows * columns * lanes * g.in.element_bytes);
  nest.tile_weight_bytes = static_cast<double>(g.terms() * w.kh * w.kw * lanes * kFloatBytes);
  nest.tile_output_bytes = static_cast<double>(c.tile_rows * width * lanes * g.out.element_bytes);
  return nest;
}

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

std::string WhyInvalid(const ConvWorkload& w, const Target& cpu, const GroupedConfig& c) {
  for (int64_t block : {c.ic_block, c.oc_block}) {
    std::string reason = WhyBlockIsInvalid(w, c.lanes, block);
    if (!reason.empty()) return reason;
  }
  const int64_t pairs = w.ic / w.g / kPairChannels;
  if (c.pairs && c.sums > pairs) return fmt::format("{} sums of {} pairs of channels", c.sums, pairs);
  if (c.sums > 1 && cpu.reproducible) return kOwnOrder;
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

namespace {

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
  const std::string reason =
      WhyInvalid(w, cpu, ReadConfig(MakeConfig(w, cpu, {1, 1, 1, Hold::kNothing}), cpu));
  return reason.empty() ? Support::Yes() : Support::No("even the smallest tile needs " + reason);
}

// The same of grouped_bf16, whose input, output or both are stored in bf16: groups of less than a vector and,
// with pairs, of whole ones.
Support SupportsBf16(const ConvWorkload& w, const Target& cpu) {
  const int64_t channels = w.ic / w.g, vector = cpu.vector_floats();
  const bool parts = channels < vector && vector % channels == 0;
  if (!parts && !(cpu.bf16 && channels % vector == 0)) {
    return Support::No(fmt::format("groups of {} channels are no parts of a vector of {}{}", channels, vector,
                                   cpu.bf16 ? ", nor whole ones" : ""));
  }
  return Supports(w, cpu);
}

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

ConfigSpace Space(const ConvWorkload& w, const Target& cpu) {
  return ConfigSpace(Knobs(w, cpu),
                     [w, cpu](const Config& config) { return WhyInvalid(w, cpu, ReadConfig(config, cpu)); });
}

ConfigSpace Bf16Space(const ConvWorkload& w, const Target& cpu) {
  std::vector<Knob> knobs = Knobs(w, cpu);
  std::ranges::find(knobs, "lanes", &Knob::name)->values = {cpu.vector_floats()};
  for (Knob& knob : TypeKnobs()) knobs.push_back(std::move(knob));
  return ConfigSpace(std::move(knobs), [w, cpu](const Config& config) -> std::string {
    const GroupedConfig c = ReadConfig(config, cpu);
    if (!c.types.narrow()) return "nothing is stored in bf16: that is the grouped template";
    return WhyInvalid(w, cpu, c);
  });
}

// A config without tuning: the widest tile that fits the registers, vector-width blocks.
Config Default(const ConvWorkload& w, const Target& cpu) {
  return DefaultIn(Space(w, cpu), w, cpu, std::nullopt);
}

Config Bf16Default(const ConvWorkload& w, const Target& cpu) {
  return DefaultIn(Bf16Space(w, cpu), w, cpu, StoredTypes{DataType::kBf16, DataType::kBf16});
}

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return MakeSchedule(w, ReadConfig(config, cpu));
}

}  // namespace
}  // namespace grouped

const ConvTemplate& GroupedBf16Template() {
  static const X86Template<grouped::Schedule> instance({.name = "grouped_bf16",
                                                        .type = DataType::kBf16,
                                                        .supports = grouped::SupportsBf16,
                                                        .space = grouped::Bf16Space,
                                                        .preset = grouped::Bf16Default,
                                                        .read = grouped::ReadSchedule,
                                                        .shifts_blocks = true,
                                                        .type_knobs = {"in_type", "out_type"},
                                                        .factors = DataType::kBf16});
  return instance;
}

const ConvTemplate& GroupedTemplate() {
  static const X86Template<grouped::Schedule> instance({.name = "grouped",
                                                        .supports = grouped::Supports,
                                                        .space = grouped::Space,
                                                        .preset = grouped::Default,
                                                        .read = grouped::ReadSchedule,
                                                        .shifts_blocks = true});
  return instance;
}

}  // namespace tilesmith
