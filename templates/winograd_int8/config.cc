#include "templates/winograd_int8/config.h"

#include <fmt/format.h>

#include "templates/base/byte_conv.h"
#include "templates/base/config.h"

namespace tilesmith::winograd_int8 {
namespace {

// What is not `preset`, the default, has to leave room for weights in the second-level cache.
std::string WhyInvalid(const ConvWorkload& w, const Target& cpu, const QuantizedWinogradCut& preset,
                       const QuantizedWinogradCut& cut) {
  if (cut == preset) return "";
  const QuantizedWinogradPlan plan(w, cpu, cut);
  if (cut.pixels > plan.part_tiles())
    return fmt::format("width_tile {} exceeds the {} tiles of a task", cut.pixels, plan.part_tiles());
  const bool smaller = cut.tile_rows <= preset.tile_rows && cut.tile_columns <= preset.tile_columns;
  if (const int64_t bytes = plan.ThreadBytes(); !smaller && bytes > cpu.l2_bytes)
    return fmt::format("{} bytes of scratch exceed the {} of the second-level cache", bytes, cpu.l2_bytes);
  return "";
}

// In numbers.
QuantizedWinogradCut DefaultCut(const ConvWorkload& w, const Target& cpu) {
  const QuantizedWinogradPlan plan(w, cpu);
  QuantizedWinogradCut cut = plan.cut();
  cut.pixels = std::min(cut.pixels, plan.part_tiles());
  return cut;
}

}  // namespace

WinogradInt8Config ReadConfig(const Config& config) {
  return {.ic_block = config.Get("ic_block"),
          .oc_block = config.Get("oc_block"),
          .cut = {.tile_rows = config.Get("tile_rows"),
                  .tile_columns = config.Get("tile_columns"),
                  .pixels = config.Get("width_tile")}};
}

Support Supports(const ConvWorkload& w, const Target& cpu) {
  if (QuantizedWinogradFits(w, cpu)) return Support::Yes();
  if (MultipliesBytes(w, cpu)) return Support::No("this CPU multiplies bytes, direct_int8 is faster");
  return Support::No("is for 3x3 of stride 1, not grouped or dilated, of so few channels that sums fit");
}

ConfigSpace Space(const ConvWorkload& w, const Target& cpu) {
  const QuantizedWinogradPlan plan(w, cpu);
  const QuantizedWinogradCut preset = DefaultCut(w, cpu);
  std::vector<int64_t> pixels;
  for (int64_t value = 1; value <= QuantizedConvTilePixels(cpu.isa, false); ++value) pixels.push_back(value);
  std::vector<Knob> knobs = ByteLayoutKnobs(w);
  knobs.insert(
      knobs.end(),
      {{"tile_rows", PartSizes(plan.all_rows, preset.tile_rows), "rows of 2x2 tiles of a task"},
       {"tile_columns", PartSizes(plan.all_columns, preset.tile_columns), "columns of 2x2 tiles of a task"},
       {"width_tile", pixels, "register tile: tiles"}});
  return ConfigSpace(std::move(knobs), [=](const Config& config) -> std::string {
    return WhyInvalid(w, cpu, preset, ReadConfig(config).cut);
  });
}

Config Default(const ConvWorkload& w, const Target& cpu) {
  const QuantizedWinogradCut cut = DefaultCut(w, cpu);
  Config config;
  config.Set("ic_block", 0);
  config.Set("oc_block", 0);
  config.Set("tile_rows", cut.tile_rows);
  config.Set("tile_columns", cut.tile_columns);
  config.Set("width_tile", cut.pixels);
  return config;
}

}  // namespace tilesmith::winograd_int8
