#include "templates/few_outputs/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "templates/base/support_checks.h"
#include "templates/few_outputs/register_plan.h"
#include "templates/few_outputs/schedule.h"

namespace tilesmith::few_outputs {
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

}  // namespace tilesmith::few_outputs
