#include "templates/cuda_gather/config.h"

#include "templates/base/support_checks.h"
#include "templates/cuda/limits.h"
#include "templates/cuda_gather/schedule.h"

namespace tilesmith::cuda_gather {
namespace {

constexpr int64_t kMaxTile = 32;           // outputs of a thread
constexpr int64_t kMaxGroupChannels = 32;  // from here on a group is a product of matrices

std::string WhyInvalid(const ConvWorkload& w, const GatherConfig& c, const Target& target) {
  if (c.tile_f > w.oc / w.g) return fmt::format("tile_f is {} for {} filters a group", c.tile_f, w.oc / w.g);
  if (c.unroll > w.ic / w.g) return fmt::format("unroll is {} for {} channels a group", c.unroll, w.ic / w.g);
  if (c.tile_y > 1 && c.tile_y >= 2 * w.oh) return "more rows than there are";
  if (c.tile_x > 1 && c.tile_x >= 2 * w.ow) return "more columns than there are";
  if (c.tile_f * c.tile_y * c.tile_x > kMaxTile)
    return fmt::format("{} outputs of a thread (allowed: {})", c.tile_f * c.tile_y * c.tile_x, kMaxTile);
  return cuda::WhyNoBlock(target, c.threads, MakeSchedule(w, c).registers(), 0);
}

}  // namespace

GatherConfig ReadConfig(const Config& config) {
  GatherConfig c;
  c.ic_block = config.Get("ic_block");
  c.oc_block = config.Get("oc_block");
  c.tile_f = config.Get("tile_f");
  c.tile_y = config.Get("tile_y");
  c.tile_x = config.Get("tile_x");
  c.threads = config.Get("threads");
  c.unroll = config.Get("unroll");
  c.channels_first = config.Get("order") == 1;
  return c;
}

ConfigSpace Space(const ConvWorkload& w, const Target& target) {
  std::vector<Knob> knobs = {
      {"ic_block", cuda::BlockKnob(w.ic), "channels per block of the input's layout; 0 is NHWC"},
      {"oc_block", cuda::BlockKnob(w.oc), "channels per block of the output's layout; 0 is NHWC"},
      {"tile_f", UpTo(w.oc / w.g, {1, 2, 4, 8}), "filters of a thread"},
      {"tile_y", {1, 2, 4}, "output rows of a thread"},
      {"tile_x", {1, 2, 4, 8}, "output columns of a thread"},
      {"threads", {64, 128, 256}, "threads of a block"},
      {"unroll", UpTo(w.ic / w.g, {1, 2, 4}), "input channels unrolled"},
      {"order", {0, 1}, "neighbouring threads have 0 neighbouring positions, 1 neighbouring channels"}};
  return ConfigSpace(std::move(knobs),
                     [w, target](const Config& config) { return WhyInvalid(w, ReadConfig(config), target); });
}

Config Default(const ConvWorkload& w, const Target&) {
  const bool channels = w.oc >= 16;
  Config config;
  config.Set("ic_block", channels ? 0 : 1);
  config.Set("oc_block", channels ? 0 : 1);
  for (const char* knob : {"tile_f", "tile_y", "tile_x", "unroll"}) config.Set(knob, 1);
  config.Set("threads", 128);
  config.Set("order", channels ? 1 : 0);
  return config;
}

Support SupportsPortable(const ConvWorkload& w, const Target& target) {
  Support fits = FitsDisplacements(w);
  if (!fits.ok) return fits;
  const Schedule s = MakeSchedule(w, ReadConfig(Default(w, target)));
  if (CeilDiv(s.tiles(), s.config.threads) > cuda::kMaxPositions)
    return Support::No("more outputs than threads");
  return Support::Yes();
}

Support SupportsDepthwise(const ConvWorkload& w, const Target& target) {
  if (w.g == 1 || w.g != w.ic) return Support::No("not one input channel a group");
  return SupportsPortable(w, target);
}

Support SupportsGrouped(const ConvWorkload& w, const Target& target) {
  if (w.g == 1) return Support::No("one group");
  if (w.g == w.ic) return Support::No("one input channel a group, which cuda_depthwise computes");
  if (w.ic / w.g > kMaxGroupChannels)
    return Support::No(fmt::format("{} channels a group (at most {})", w.ic / w.g, kMaxGroupChannels));
  return SupportsPortable(w, target);
}

}  // namespace tilesmith::cuda_gather
