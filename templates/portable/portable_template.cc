#include "templates/portable/portable_template.h"

#include <algorithm>

#include "layouts/base/check.h"
#include "templates/portable/portable_conv.h"

namespace tilesmith {
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
int64_t RegisterTile(const CpuInfo& cpu) {
  const int vectors = kPortableLanes / cpu.vector_floats();
  return std::clamp<int64_t>((cpu.vector_registers() - vectors - 1) / vectors, 1, kPortableMaxTile);
}

bool FewChannelsPerGroup(const ConvWorkload& w) { return w.oc / w.g < 8 && w.oc != w.g; }

}  // namespace

Support PortableTemplate::Supports(const ConvWorkload& workload, const CpuInfo&) const {
  return SupportsUnfused(workload);
}

ConfigSpace PortableTemplate::Space(const ConvWorkload& workload, const CpuInfo& cpu) const {
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
    const int64_t floats = PortablePlaneScratchFloats(workload, config.Get("rows"));
    if (floats <= kMaxPlaneScratchFloats) return "";
    return fmt::format("vector_over=1 gathers {} floats per task (allowed: {})", floats,
                       kMaxPlaneScratchFloats);
  };
  return ConfigSpace(std::move(knobs), why_invalid);
}

Config PortableTemplate::Default(const ConvWorkload& workload, const CpuInfo& cpu) const {
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

LayoutPair PortableTemplate::Layouts(const ConvWorkload&, const Config& config) const {
  return {LayoutOfBlockKnob(config.Get("ic_block")), LayoutOfBlockKnob(config.Get("oc_block"))};
}

LoopFeatures PortableTemplate::Features(const ConvWorkload& w, const Config& config,
                                        const CpuInfo& cpu) const {
  constexpr double kBytes = sizeof(float);
  const bool over_width = config.Get("vector_over") == kOverWidth;
  const int64_t rows = std::min(config.Get("rows"), w.oh), tile = config.Get("ow_tile");
  const int64_t lanes = cpu.vector_floats();
  const auto round_up = [&](int64_t n) { return (n + lanes - 1) / lanes * lanes; };
  const int64_t outputs = over_width ? w.oc * round_up(w.ow) : round_up(w.oc) * w.ow;
  const int64_t taps = w.ic / w.g * w.kh * w.kw;
  const auto vectors = static_cast<double>(kPortableLanes) / static_cast<double>(lanes);
  LoopFeatures f;
  f.flops = 2.0 * static_cast<double>(w.mb * w.oh * outputs) * static_cast<double>(taps);
  f.accumulators = over_width ? 1 : vectors * static_cast<double>(tile);
  f.fma_per_load = over_width ? 1 : f.accumulators / (vectors + static_cast<double>(tile));
  f.weight_bytes = static_cast<double>(w.oc * taps) * kBytes;
  f.tasks = static_cast<double>(w.mb * ((w.oh + rows - 1) / rows));
  f.task_input_bytes = InputBytes(w, rows, w.ic);
  f.task_weight_bytes = f.weight_bytes;
  f.task_output_bytes = static_cast<double>(rows * w.ow * w.oc) * kBytes;
  if (over_width) f.scratch_bytes = static_cast<double>(PortablePlaneScratchFloats(w, rows)) * kBytes;
  return f;
}

std::unique_ptr<ConvKernel> PortableTemplate::Build(const ConvWorkload& workload, const Config& config,
                                                    const CpuInfo& cpu, const ConvWeights& weights) const {
  TILESMITH_CHECK((weights.bias != nullptr) == workload.post.bias, "bias of {}", config.ToString());
  const PortableGeometry geometry =
      MakePortableGeometry(workload, Layouts(workload, config), config.Get("rows"), cpu);
  if (config.Get("vector_over") == kOverWidth) return MakePortablePlaneKernel(geometry, weights);
  return MakePortableChannelKernel(geometry, config.Get("ow_tile"), weights);
}

}  // namespace tilesmith
