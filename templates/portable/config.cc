#include "templates/portable/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "templates/portable/schedule.h"
#include "templates/portable/tiles.h"

namespace tilesmith::portable {
namespace {

constexpr int64_t kOverChannels = 0;
constexpr int64_t kOverWidth = 1;
// Gathered rows beyond this do not stay in a second-level cache, which the width form lives off.
constexpr int64_t kMaxPlaneScratchFloats = 1 << 18;

// Blocks much wider than the tensor only add padding.
std::vector<int64_t> BlockValues(int64_t channels) {
  std::vector<int64_t> values;
  for (const int64_t block : {1, 8, 16, 32}) {
    if (block <= 16 || block < 2 * channels) values.push_back(block);
  }
  values.push_back(0);
  return values;
}

std::vector<int64_t> RowValues(int64_t oh) {
  std::vector<int64_t> values;
  for (int64_t rows = 1; rows < 2 * oh && rows <= 32; rows *= 2) values.push_back(rows);
  return values;
}

// Most positions whose accumulators fit the registers beside the weights of one step.
int64_t RegisterTile(const Target& cpu) {
  const int vectors = kPortableLanes / cpu.vector_floats();
  return std::clamp<int64_t>((cpu.vector_registers() - vectors - 1) / vectors, 1, kPortableMaxTile);
}

bool FewChannelsPerGroup(const ConvWorkload& w) { return w.oc / w.g < 8 && w.oc != w.g; }

}  // namespace

PortableConfig ReadConfig(const Config& config) {
  PortableConfig c;
  c.ic_block = config.Get("ic_block");
  c.oc_block = config.Get("oc_block");
  c.over_width = config.Get("vector_over") == kOverWidth;
  c.ow_tile = config.Get("ow_tile");
  c.rows = config.Get("rows");
  return c;
}

Support Supports(const ConvWorkload&, const Target&) { return Support::Yes(); }

ConfigSpace Space(const ConvWorkload& workload, const Target& cpu) {
  std::vector<int64_t> tiles = {1, 2, 3, 4, 6, 7, 8, 10, 12, 14};
  std::erase_if(tiles, [&](int64_t tile) { return tile > std::max(RegisterTile(cpu), int64_t{1}); });
  std::vector<Knob> knobs = {
      {"ic_block", BlockValues(workload.ic), "channels per block of the input's layout; 0 is NHWC"},
      {"oc_block", BlockValues(workload.oc), "channels per block of the output's layout; 0 is NHWC"},
      {"vector_over",
       {kOverChannels, kOverWidth},
       "what a vector holds: 0 output channels, 1 positions of a row"},
      {"ow_tile", tiles, "output positions computed together (vector_over=0)"},
      {"rows", RowValues(workload.oh), "output rows per task"}};
  const auto why_invalid = [workload, first_tile = tiles.front()](const Config& config) -> std::string {
    if (config.Get("vector_over") == kOverChannels) return "";
    if (config.Get("ow_tile") != first_tile) return "ow_tile has no meaning with vector_over=1";
    const int64_t floats = PlaneScratchFloats(workload, config.Get("rows"));
    if (floats <= kMaxPlaneScratchFloats) return "";
    return fmt::format("vector_over=1 gathers {} floats per task (allowed: {})", floats,
                       kMaxPlaneScratchFloats);
  };
  return ConfigSpace(std::move(knobs), why_invalid);
}

Config Default(const ConvWorkload& workload, const Target& cpu) {
  const ConfigSpace space = Space(workload, cpu);
  const int64_t block = std::max(cpu.vector_floats(), 8);
  const std::vector<int64_t>& tiles = space.knobs()[3].values;
  Config config;
  config.Set("ic_block", workload.ic < block ? 1 : block);
  config.Set("oc_block", workload.oc < block ? 1 : block);
  config.Set("rows", workload.oh >= 32 ? 4 : workload.oh >= 4 ? 2 : 1);
  config.Set("vector_over", kOverWidth);
  config.Set("ow_tile", tiles.front());
  const bool scalar_depthwise = workload.g > 1 && workload.g == workload.oc && workload.oc < block;
  if ((FewChannelsPerGroup(workload) || scalar_depthwise) && space.WhyInvalid(config).empty()) return config;
  config.Set("vector_over", kOverChannels);
  config.Set("ow_tile", tiles.back());
  return config;
}

}  // namespace tilesmith::portable
