#include "templates/amx_bf16/config.h"

#include <fmt/format.h>

#include "ops/kernels/tile_products.h"
#include "templates/base/part_sizes.h"
#include "templates/base/support_checks.h"

namespace tilesmith::amx_bf16 {
namespace {

constexpr double kMaxWindowBytes = 16 << 20;
constexpr int64_t kBf16Bytes = 2;

// Planes of floats are read as they are, where there are few, as of images.
bool ReadsPlanes(const ConvWorkload& w) {
  constexpr int64_t kMaxPlanes = 4;
  return w.ic <= kMaxPlanes && w.g == 1 && !w.pre.any();
}

// Blocks of a step's channels are read where they lie; of fewer, two are put together.
std::vector<int64_t> InputBlocks(const ConvWorkload& w) {
  if (w.g > 1) return {0};
  std::vector<int64_t> blocks;
  if (ReadsPlanes(w)) blocks.push_back(1);
  for (const int64_t block : {8, 16, 32, 64})
    if (block < 2 * w.ic || block == 8) blocks.push_back(block);
  blocks.push_back(0);
  return blocks;
}

// Blocks that the channels of a task fill.
std::vector<int64_t> OutputBlocks(const ConvWorkload& w) {
  const int64_t outputs = w.oc / w.g;
  std::vector<int64_t> blocks;
  for (const int64_t block : {16, 32})
    if (w.g == 1 ? block < 2 * w.oc || block == 16 : outputs % 32 == 0) blocks.push_back(block);
  blocks.push_back(0);
  return blocks;
}

std::string WhyInvalid(const ConvWorkload& w, const Target& cpu, const WindowCut& preset,
                       const AmxConfig& config) {
  if (config.ic_block == 1 && config.types.in != DataType::kF32) return "planes are read in f32";
  const WindowCut& cut = config.cut;
  if (cut == preset) return "";
  const WindowPlan plan(w, FormOf(), cpu.cores, cut);
  if (!cut.blocks_inner && (plan.tiles() == 1 || plan.groups * plan.blocks == 1))
    return "oc_inner changes nothing: tasks are in one line";
  const bool smaller = cut.tile_rows <= preset.tile_rows && cut.tile_columns <= preset.tile_columns;
  if (const int64_t bytes = plan.ThreadBytes(); !smaller && bytes > cpu.l2_bytes) {
    return fmt::format("{} bytes of widened input exceed the {} of the second-level cache", bytes,
                       cpu.l2_bytes);
  }
  return "";
}

}  // namespace

WindowForm FormOf() {
  return {.number_bytes = kBf16Bytes, .lanes = 2 * kTileRows, .pixels = kMaxTilePositions, .amx = true};
}

AmxConfig ReadConfig(const Config& config) {
  return {.ic_block = config.Get("ic_block"),
          .oc_block = config.Get("oc_block"),
          .cut = {.tile_rows = config.Get("tile_rows"),
                  .tile_columns = config.Get("tile_columns"),
                  .pixels = FormOf().pixels,
                  .blocks_inner = config.Get("oc_inner") != 0},
          .prefetch = static_cast<Prefetch>(config.Get("prefetch")),
          .types = ReadTypes(config)};
}

Support Supports(const ConvWorkload& w, const Target& cpu) {
  if (!cpu.amx) return Support::No("multiplies tiles with AMX, which this CPU lacks");
  if (!w.before.empty()) return Support::No("computes no other conv in front of the conv");
  if (const int64_t outputs = w.oc / w.g; w.g > 1 && 2 * outputs <= kTileRows) {
    return Support::No(
        fmt::format("groups of {} output channels fill no more than half a tile of {}", outputs, kTileRows));
  }
  if (Support fits = FitsDisplacements(w); !fits.ok) return fits;
  if (WidenedWindowBytes(w, 2 * (w.ic / w.g)) > kMaxWindowBytes)
    return Support::No("what one output sees is too large to be copied");
  return Support::Yes();
}

ConfigSpace Space(const ConvWorkload& w, const Target& cpu) {
  const WindowPlan preset(w, FormOf(), cpu.cores);
  std::vector<Knob> knobs = {
      {"ic_block", InputBlocks(w), "x of the input's layout NCHW[x]c; 0 is NHWC"},
      {"oc_block", OutputBlocks(w), "x of the output's layout NCHW[x]c; 0 is NHWC"},
      {"tile_rows", PartSizes(preset.conv.oh, preset.tile_rows),
       "output rows of a task; one, where 1x1 recuts the image"},
      {"tile_columns", PartSizes(preset.conv.ow, preset.tile_columns),
       "output columns of a task; pixels, where 1x1 recuts the image"},
      {"prefetch",
       {0, 1, 2},
       "fetched ahead: 0 nothing, 1 weights of some steps, 2 windows of the next positions"},
      {"oc_inner", {1, 0}, "tasks that are neighbours: 1 those of the same pixels, 0 of the same channels"},
  };
  for (Knob& knob : TypeKnobs()) knobs.push_back(std::move(knob));
  return ConfigSpace(std::move(knobs), [w, cpu, cut = preset.cut()](const Config& config) {
    return WhyInvalid(w, cpu, cut, ReadConfig(config));
  });
}

Config Default(const ConvWorkload& w, const Target& cpu) {
  const WindowPlan preset(w, FormOf(), cpu.cores);
  Config config;
  config.Set("ic_block", ReadsPlanes(w) ? 1 : 0);
  config.Set("oc_block", 0);
  config.Set("tile_rows", preset.tile_rows);
  config.Set("tile_columns", preset.tile_columns);
  config.Set("prefetch", 0);
  config.Set("oc_inner", 1);
  SetTypes({ReadsPlanes(w) ? DataType::kF32 : DataType::kBf16, DataType::kBf16}, config);
  return config;
}

}  // namespace tilesmith::amx_bf16
