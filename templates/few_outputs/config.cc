#include "templates/few_outputs/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "templates/base/conv_template.h"
#include "templates/base/image_strides.h"
#include "templates/base/schedule_template.h"

namespace tilesmith {
namespace few_outputs {

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

LoopNest NestOf(const Schedule& g) {
  const ConvWorkload& w = g.workload;
  const FewOutputsConfig& c = g.config;
  const int64_t width = c.vectors * c.lanes;
  LoopNest nest;
  nest.tasks = {LoopOver("mb", w.mb, 1, LoopKind::kTasks),
                LoopOver("oh", w.oh, g.rows_per_task(), LoopKind::kTasks, "output rows of a task"),
                LoopOver("oc", w.oc, c.outputs, LoopKind::kTasks)};
  LoopPart part;
  part.loops = {LoopOver("oh", g.rows_per_task(), c.tile_rows, LoopKind::kLoop),
                LoopOver("ow", w.ow, width, LoopKind::kLoop, "register tiles"),
                LoopOver("ic", w.ic, c.ic_unroll, LoopKind::kLoop),
                LoopOver("ic", c.ic_unroll, 1, LoopKind::kUnrolled),
                LoopOver("kh", w.kh, 1, LoopKind::kUnrolled),
                LoopOver("kw", w.kw, 1, LoopKind::kUnrolled),
                LoopOver("oh", c.tile_rows, 1, LoopKind::kUnrolled, "register tile: rows"),
                LoopOver("ow", width, c.lanes, LoopKind::kUnrolled, "register tile: vectors of a row"),
                LoopOver("oc", c.outputs, 1, LoopKind::kUnrolled, "register tile: channels"),
                LoopOver("ow", c.lanes, 1, LoopKind::kVector)};
  if (c.prefetch != Prefetch::kNone) part.loops[1].note += ", which fetch the rows of the next ones below";
  part.body = "sum += weight, broadcast, * input";
  nest.parts = {std::move(part)};
  constexpr double kBytes = sizeof(float);
  const int64_t rows = std::min(w.ih, (c.tile_rows - 1) * w.sh + (w.kh - 1) * (w.dh + 1) + 1);
  const int64_t columns = std::min(w.iw, width + (w.kw - 1) * (w.dw + 1));
  nest.tile_input_bytes = static_cast<double>(rows * columns * w.ic) * kBytes;
  nest.tile_weight_bytes = static_cast<double>(c.outputs * w.ic * w.kh * w.kw) * kBytes;
  nest.tile_output_bytes = static_cast<double>(c.outputs * c.tile_rows * std::min(width, w.ow)) * kBytes;
  return nest;
}

namespace {

constexpr int64_t kMaxOutputs = 8;
constexpr int64_t kMinTapBytes = 17;  // a load and a multiplication

std::string WhyInvalid(const ConvWorkload& workload, const FewOutputsConfig& c) {
  const ConvWorkload w = Flattened(workload, c.flat_width);
  const int64_t vectors = (w.ow + c.lanes - 1) / c.lanes;
  if (c.vectors > vectors) return fmt::format("vectors {} exceeds the {} of a row", c.vectors, vectors);
  if (c.balance_tiles && vectors % c.vectors == 0) return "balance_tiles changes nothing: tiles are even";
  if (c.tile_rows > w.oh) return fmt::format("tile_rows {} exceeds the {} there are", c.tile_rows, w.oh);
  if (c.row_tiles > 1 && (c.row_tiles - 1) * c.tile_rows >= w.oh)
    return fmt::format("row_tiles {} exceeds the rows", c.row_tiles);
  std::string no_registers =
      fmt::format("register tile {} x {} x {} does not fit the registers", c.outputs, c.tile_rows, c.vectors);
  if (c.outputs * c.tile_rows * c.vectors > 2 * c.lanes) return no_registers;
  const Schedule g = MakeSchedule(workload, c);
  if (!PlanRegisters(g, {c.outputs, c.tile_rows, c.vectors}).fits) return no_registers;
  if (InputRowsOf(w, c.tile_rows).size() > kMaxInputRows)
    return fmt::format("a tile of {} rows reads more than {} input rows", c.tile_rows, kMaxInputRows);
  const int64_t code = EstimateCodeBytes(g);
  if (code > kMaxCodeBytes) return fmt::format("some {} bytes of code (at most {})", code, kMaxCodeBytes);
  return "";
}

Config MakeConfig(const Target& cpu, const TileSize& tile) {
  Config config;
  config.Set("lanes", cpu.vector_floats());
  config.Set("outputs", tile.outputs);
  config.Set("vectors", tile.vectors);
  config.Set("tile_rows", tile.rows);
  config.Set("balance_tiles", 0);
  config.Set("ic_unroll", 1);
  config.Set("row_tiles", 1);
  config.Set("prefetch", static_cast<int64_t>(Prefetch::kNone));
  config.Set("flat_width", 0);
  return config;
}

Support Supports(const ConvWorkload& w, const Target& cpu) {
  if (w.g > 1) return Support::No("a grouped convolution");
  if (w.oc > kMaxOutputs)
    return Support::No(fmt::format("{} output channels (at most {})", w.oc, kMaxOutputs));
  if (w.sw > 1) return Support::No("a horizontal stride: vectors of a row would need every other element");
  if (Support fits = FitsDisplacements(w, 0); !fits.ok) return fits;
  if (w.kh > static_cast<int64_t>(kMaxInputRows))
    return Support::No(fmt::format("{} kernel rows (at most {})", w.kh, kMaxInputRows));
  // A lower bound, at once: telling exactly takes memory for every tile at an edge.
  const int64_t code = EdgePositions(w) / cpu.vector_floats() * w.kh * w.kw * kMinTapBytes;
  if (w.kw > kMaxCodeBytes || code > kMaxCodeBytes)
    return Support::No(fmt::format("a kernel of {}x{} makes too much code", w.kh, w.kw));
  const std::string reason = WhyInvalid(w, ReadConfig(MakeConfig(cpu, {1, 1, 1})));
  return reason.empty() ? Support::Yes() : Support::No("even the smallest tile needs " + reason);
}

ConfigSpace Space(const ConvWorkload& w, const Target& cpu) {
  const std::vector<int64_t> flat_widths = LongerRowWidths(w);
  const int64_t row = std::max(w.ow, *std::max_element(flat_widths.begin(), flat_widths.end()));
  const int64_t vectors = (row + 7) / 8;
  const bool wide = cpu.isa == Isa::kAvx512;
  std::vector<Knob> knobs = {
      {"lanes", wide ? std::vector<int64_t>{16, 8} : std::vector<int64_t>{8}, "positions of a vector"},
      {"outputs", UpTo(w.oc, {1, 2, 3, 4, 5, 6, 7, 8}), "register tile: output channels"},
      {"vectors", UpTo(vectors, {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24}),
       "register tile: vectors of a row"},
      {"tile_rows", UpTo(w.oh, {1, 2, 3, 4, 5, 6, 8}), "register tile: output rows"},
      {"balance_tiles", {0, 1}, "1: tiles of a row are equally wide"},
      {"ic_unroll", UpTo(w.ic, {1, 2, 4, 8}), "input channels unrolled"},
      {"row_tiles", UpTo(w.oh, {1, 2, 3, 4, 5, 7, 8, 14, 16, 28, 56}), "tiles of tile_rows rows per task"},
      {"prefetch", {0, 1, 2}, "rows of the next tile: 0 none, 1 into the second-level cache, 2 the first"},
      {"flat_width", flat_widths, "1x1: width of the rows an image is recut into; 0 keeps its own"},
  };
  return ConfigSpace(std::move(knobs),
                     [w](const Config& config) { return WhyInvalid(w, ReadConfig(config)); });
}

// A config without tuning: all outputs, and as much of a row as the registers take.
Config Default(const ConvWorkload& w, const Target& cpu) {
  const ConfigSpace space = Space(w, cpu);
  for (const int64_t outputs : {w.oc, (w.oc + 1) / 2, int64_t{1}}) {
    for (const int64_t rows : {2, 1}) {
      for (const int64_t vectors : {8, 7, 6, 5, 4, 3, 2, 1}) {
        Config config = MakeConfig(cpu, {outputs, rows, vectors});
        if (space.WhyInvalid(config).empty()) return config;
      }
    }
  }
  return MakeConfig(cpu, {1, 1, 1});
}

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target&) {
  return MakeSchedule(w, ReadConfig(config));
}

}  // namespace

FewOutputsConfig ReadConfig(const Config& config) {
  FewOutputsConfig c;
  c.lanes = config.Get("lanes");
  c.outputs = config.Get("outputs");
  c.vectors = config.Get("vectors");
  c.tile_rows = config.Get("tile_rows");
  c.balance_tiles = config.Get("balance_tiles") != 0;
  c.ic_unroll = config.Get("ic_unroll");
  c.row_tiles = config.Get("row_tiles");
  c.prefetch = static_cast<Prefetch>(config.Get("prefetch"));
  c.flat_width = config.Get("flat_width");
  return c;
}

}  // namespace few_outputs

const ConvTemplate& FewOutputsTemplate() {
  static const X86Template<few_outputs::Schedule> instance({.name = "few_outputs",
                                                            .supports = few_outputs::Supports,
                                                            .space = few_outputs::Space,
                                                            .preset = few_outputs::Default,
                                                            .read = few_outputs::ReadSchedule,
                                                            .shifts_blocks = true,
                                                            .layout_knobs = {}});
  return instance;
}

}  // namespace tilesmith
