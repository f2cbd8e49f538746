#include "templates/amx/config.h"

#include <fmt/format.h>

#include "ops/conv/conv.h"
#include "templates/base/config.h"
#include "templates/base/conv_template.h"

namespace tilesmith::amx {
namespace {

constexpr double kMaxWindowBytes = 16 << 20;

}  // namespace

AmxConfig ReadConfig(const Config& config) {
  return {.ic_block = config.Get("ic_block"),
          .oc_block = config.Get("oc_block"),
          .cut = {.tile_rows = config.Get("tile_rows"),
                  .tile_columns = config.Get("tile_columns"),
                  .pixels = kMaxTilePositions,
                  .blocks_inner = config.Get("oc_inner") != 0},
          .prefetch = static_cast<Prefetch>(config.Get("prefetch"))};
}

WindowForm FormOf(int64_t number_bytes) {
  return {.number_bytes = number_bytes, .lanes = 2 * kTileRows, .pixels = kMaxTilePositions, .amx = true};
}

Support Supports(const ConvWorkload& w, const Target& cpu, int64_t number_bytes) {
  if (!cpu.amx) return Support::No("multiplies tiles with AMX, which this CPU lacks");
  if (!w.before.empty()) return Support::No("computes no other conv in front of the conv");
  if (const int64_t outputs = w.oc / w.g; w.g > 1 && 2 * outputs <= kTileRows) {
    return Support::No(
        fmt::format("groups of {} output channels fill no more than half a tile of {}", outputs, kTileRows));
  }
  if (Support fits = FitsDisplacements(w); !fits.ok) return fits;
  if (LeastSeenBytes(w, number_bytes * (w.ic / w.g)) > kMaxWindowBytes)
    return Support::No("what one output sees is too large to be copied");
  return Support::Yes();
}

std::vector<int64_t> OutputBlocks(const ConvWorkload& w) {
  const int64_t outputs = w.oc / w.g;
  std::vector<int64_t> blocks;
  for (const int64_t block : {16, 32})
    if (w.g == 1 ? block < 2 * w.oc || block == 16 : outputs % 32 == 0) blocks.push_back(block);
  blocks.push_back(0);
  return blocks;
}

std::vector<Knob> Knobs(const WindowPlan& preset, std::vector<int64_t> in_blocks,
                        std::vector<int64_t> out_blocks) {
  return {
      {"ic_block", std::move(in_blocks), "x of the input's layout NCHW[x]c; 0 is NHWC"},
      {"oc_block", std::move(out_blocks), "x of the output's layout NCHW[x]c; 0 is NHWC"},
      {"tile_rows", PartSizes(preset.conv.oh, preset.tile_rows),
       "output rows of a task; one, where 1x1 recuts the image"},
      {"tile_columns", PartSizes(preset.conv.ow, preset.tile_columns),
       "output columns of a task; pixels, where 1x1 recuts the image"},
      {"prefetch",
       {0, 1, 2},
       "fetched ahead: 0 nothing, 1 weights of some steps, 2 windows of the next positions"},
      {"oc_inner", {1, 0}, "tasks that are neighbours: 1 those of the same pixels, 0 of the same channels"},
  };
}

std::string WhyInvalid(const ConvWorkload& w, const Target& cpu, const WindowPlan& preset,
                       const WindowCut& cut) {
  if (cut == preset.cut()) return "";
  return WhyNoGoodCut(WindowPlan(w, FormOf(preset.number_bytes), cpu.cores, cut), preset.cut(), cpu);
}

Config DefaultOf(const WindowPlan& preset) {
  Config config;
  config.Set("ic_block", 0);
  config.Set("oc_block", 0);
  config.Set("tile_rows", preset.tile_rows);
  config.Set("tile_columns", preset.tile_columns);
  config.Set("prefetch", 0);
  config.Set("oc_inner", 1);
  return config;
}

}  // namespace tilesmith::amx
