#include "templates/direct_int8/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/quantize/quantized_conv_kernel.h"
#include "ops/quantize/quantized_depthwise_kernel.h"
#include "templates/base/byte_conv.h"
#include "templates/base/config.h"

namespace tilesmith::direct_int8 {
namespace {

// The cut that a kernel makes by itself, in numbers.
WindowCut DefaultCut(const ConvWorkload& w, const Target& cpu) {
  if (QuantizedDepthwiseFits(w, cpu))
    return {.tile_rows = QuantizedDepthwiseRows(w, cpu.cores), .tile_columns = w.ow, .pixels = 1};
  return QuantizedConvPlan(w, cpu).cut();
}

// What is not `preset`, the default, has to leave room for weights in the second-level cache.
std::string WhyInvalid(const ConvWorkload& w, const Target& cpu, const WindowCut& preset,
                       const WindowCut& cut) {
  if (cut == preset) return "";
  const WindowPlan plan = QuantizedConvPlan(w, cpu, cut);
  const int64_t pixels = cut.tile_rows * cut.tile_columns;
  if (cut.pixels > pixels && QuantizedConvForm(w, cpu).chooses_pixels())
    return fmt::format("width_tile {} exceeds the {} pixels of a task", cut.pixels, pixels);
  if (!cut.blocks_inner && (plan.tiles() == 1 || plan.groups * plan.blocks == 1))
    return "oc_inner changes nothing: tasks are in one line";
  const bool smaller = cut.tile_rows <= preset.tile_rows && cut.tile_columns <= preset.tile_columns;
  if (const int64_t bytes = plan.ThreadBytes(); !smaller && bytes > cpu.l2_bytes)
    return fmt::format("{} bytes of widened input exceed the {} of the second-level cache", bytes,
                       cpu.l2_bytes);
  return "";
}

}  // namespace

DirectInt8Config ReadConfig(const Config& config) {
  return {.ic_block = config.Get("ic_block"),
          .oc_block = config.Get("oc_block"),
          .cut = {.tile_rows = config.Get("tile_rows"),
                  .tile_columns = config.Get("tile_columns"),
                  .pixels = config.Get("width_tile"),
                  .blocks_inner = config.Get("oc_inner") != 0}};
}

Support Supports(const ConvWorkload& w, const Target&) {
  if (QuantizedConvKernelFits(w)) return Support::Yes();
  return Support::No("what one output sees is too large to be widened");
}

ConfigSpace Space(const ConvWorkload& w, const Target& cpu) {
  const bool fixed = QuantizedDepthwiseFits(w, cpu);
  const WindowCut preset = DefaultCut(w, cpu);
  const ConvWorkload conv = fixed ? w : QuantizedConvPlan(w, cpu).conv;
  std::vector<int64_t> pixels = {1}, columns = {w.ow}, inner = {1};
  if (!fixed) {
    const WindowForm form = QuantizedConvForm(w, cpu);
    const bool only = !form.chooses_pixels();
    if (only) pixels = {form.pixels};
    for (int64_t value = 2; value <= form.pixels && !only; ++value) pixels.push_back(value);
    columns = PartSizes(conv.ow, preset.tile_columns);
    inner.push_back(0);
  }
  std::vector<Knob> knobs = ByteLayoutKnobs(w);
  knobs.insert(
      knobs.end(),
      {{"tile_rows", PartSizes(conv.oh, preset.tile_rows),
        "output rows of a task; one, where 1x1 recuts the image"},
       {"tile_columns", columns, "output columns of a task; pixels, where 1x1 recuts the image"},
       {"width_tile", pixels, "register tile: pixels"},
       {"oc_inner", inner, "tasks that are neighbours: 1 those of the same pixels, 0 of the same channels"}});
  return ConfigSpace(std::move(knobs), [=](const Config& config) -> std::string {
    return fixed ? "" : WhyInvalid(w, cpu, preset, ReadConfig(config).cut);
  });
}

Config Default(const ConvWorkload& w, const Target& cpu) {
  const WindowCut cut = DefaultCut(w, cpu);
  Config config;
  config.Set("ic_block", 0);
  config.Set("oc_block", 0);
  config.Set("tile_rows", cut.tile_rows);
  config.Set("tile_columns", cut.tile_columns);
  config.Set("width_tile", cut.pixels);
  config.Set("oc_inner", cut.blocks_inner ? 1 : 0);
  return config;
}

}  // namespace tilesmith::direct_int8
