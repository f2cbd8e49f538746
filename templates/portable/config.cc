#include "templates/portable/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "templates/base/schedule_template.h"
#include "templates/portable/tiles.h"

namespace tilesmith {
namespace portable {

Schedule MakeSchedule(const ConvWorkload& workload, const PortableConfig& config, int vector_floats) {
  return {workload, config, LayoutOfBlockKnob(config.ic_block), LayoutOfBlockKnob(config.oc_block),
          vector_floats};
}

bool IsDepthwise(const ConvWorkload& workload, int64_t in_block, int64_t out_block) {
  return workload.g == workload.ic && workload.g == workload.oc && in_block == out_block && in_block >= 8;
}

std::vector<Chunk> ChunksOf(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  const int64_t in_block = s.in.BlockFor(w.ic), out_block = s.out.BlockFor(w.oc);
  std::vector<Chunk> chunks;
  if (!IsDepthwise(w, in_block, out_block)) {
    const int64_t per_group = w.oc / w.g;
    for (int64_t group = 0; group < w.g; ++group) {
      for (int64_t o = 0; o < per_group; o += kPortableLanes) {
        chunks.push_back(
            {group * per_group + o, std::min<int64_t>(kPortableLanes, per_group - o), kPortableLanes});
      }
    }
    return chunks;
  }
  // A padded block may be read to its end; the one block of NHWC is followed by the next pixel.
  const bool padded = s.out.PaddedChannels(w.oc) > w.oc;
  for (int64_t o = 0; o < w.oc;) {
    const int64_t left = std::min(out_block - o % out_block, padded ? out_block : w.oc - o);
    const int lanes = left >= 16 ? 16 : left >= 8 ? 8 : 1;
    chunks.push_back({o, std::min<int64_t>(lanes, w.oc - o), lanes});
    o += lanes;
  }
  return chunks;
}

TaskGrid GridOf(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  return {.images = w.mb,
          .channels = s.config.over_width ? w.g : static_cast<int64_t>(ChunksOf(s).size()),
          .rows = (w.oh + s.config.rows - 1) / s.config.rows,
          .height = w.oh,
          .part_units = s.config.rows};
}

LoopFeatures FeaturesOf(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  const PortableConfig& c = s.config;
  constexpr double kBytes = sizeof(float);
  const int64_t rows = std::min(c.rows, w.oh), tile = c.ow_tile, lanes = s.vector_floats;
  const auto round_up = [&](int64_t n) { return (n + lanes - 1) / lanes * lanes; };
  const int64_t outputs = c.over_width ? w.oc * round_up(w.ow) : round_up(w.oc) * w.ow;
  const int64_t taps = w.ic / w.g * w.kh * w.kw;
  const auto vectors = static_cast<double>(kPortableLanes) / static_cast<double>(lanes);
  LoopFeatures f;
  f.flops = 2.0 * static_cast<double>(w.mb * w.oh * outputs) * static_cast<double>(taps);
  f.accumulators = c.over_width ? 1 : vectors * static_cast<double>(tile);
  f.fma_per_load = c.over_width ? 1 : f.accumulators / (vectors + static_cast<double>(tile));
  f.weight_bytes = static_cast<double>(w.oc * taps) * kBytes;
  f.tasks = static_cast<double>(w.mb * ((w.oh + rows - 1) / rows));
  f.task_input_bytes = InputBytes(w, rows, w.ic);
  f.task_weight_bytes = f.weight_bytes;
  f.task_output_bytes = static_cast<double>(rows * w.ow * w.oc) * kBytes;
  if (c.over_width) f.scratch_bytes = static_cast<double>(PlaneScratchFloats(w, rows)) * kBytes;
  return f;
}

namespace {

constexpr double kBytes = sizeof(float);

LoopNest OverChannels(const Schedule& s, bool depthwise) {
  const ConvWorkload& w = s.workload;
  const int64_t rows = std::min(s.config.rows, w.oh), width = std::min(s.config.ow_tile, w.ow);
  const int64_t channels = depthwise ? 1 : w.ic / w.g, outputs = depthwise ? w.oc : w.oc / w.g;
  LoopNest nest;
  nest.tasks = {LoopOver("mb", w.mb, 1, LoopKind::kTasks),
                LoopOver("g", depthwise ? 1 : w.g, 1, LoopKind::kTasks),
                LoopOver(depthwise ? "c" : "oc", outputs, kPortableLanes, LoopKind::kTasks),
                LoopOver("oh", w.oh, rows, LoopKind::kTasks, "output rows of a task")};
  LoopPart part;
  part.loops = {LoopOver("oh", rows, 1, LoopKind::kLoop),
                LoopOver("ow", w.ow, width, LoopKind::kLoop, "tiles; positions at the border one by one"),
                LoopOver("kh", w.kh, 1, LoopKind::kLoop),
                LoopOver("kw", w.kw, 1, LoopKind::kLoop),
                LoopOver("ic", channels, 1, LoopKind::kLoop),
                LoopOver("ow", width, 1, LoopKind::kUnrolled),
                LoopOver(depthwise ? "c" : "oc", kPortableLanes, 1, LoopKind::kVector)};
  part.body = "sum += weights * input";
  nest.parts = {std::move(part)};
  const int64_t lanes = kPortableLanes,
                columns = std::min(w.iw, (width - 1) * w.sw + (w.kw - 1) * (w.dw + 1) + 1);
  nest.tile_input_bytes = static_cast<double>(columns * w.kh * (depthwise ? lanes : channels)) * kBytes;
  nest.tile_weight_bytes = static_cast<double>(lanes * w.kh * w.kw * channels) * kBytes;
  nest.tile_output_bytes = static_cast<double>(lanes * width) * kBytes;
  return nest;
}

LoopNest OverWidth(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  const int64_t rows = std::min(s.config.rows, w.oh), channels = w.ic / w.g, outputs = w.oc / w.g;
  const int64_t planes = std::min<int64_t>(kPortableMaxPlanes, outputs), lanes = kPortableLanes;
  LoopNest nest;
  nest.tasks = {LoopOver("mb", w.mb, 1, LoopKind::kTasks), LoopOver("g", w.g, 1, LoopKind::kTasks),
                LoopOver("oh", w.oh, rows, LoopKind::kTasks, "output rows of a task")};
  LoopPart gather = {"gather the group's input rows, planar and padded", {}, "row in scratch = input", 0};
  gather.loops = {LoopOver("ic", channels, 1, LoopKind::kLoop),
                  LoopOver("ih", (rows - 1) * w.sh + (w.kh - 1) * (w.dh + 1) + 1, 1, LoopKind::kLoop),
                  LoopOver("iw", w.iw, 1, LoopKind::kLoop)};
  LoopPart multiply = {"multiply", {}, "sum += weight * input", 1};
  multiply.loops = {
      LoopOver("oh", rows, 1, LoopKind::kLoop),       LoopOver("oc", outputs, planes, LoopKind::kLoop),
      LoopOver("ow", w.ow, lanes, LoopKind::kLoop),   LoopOver("ic", channels, 1, LoopKind::kLoop),
      LoopOver("kh", w.kh, 1, LoopKind::kLoop),       LoopOver("kw", w.kw, 1, LoopKind::kLoop),
      LoopOver("oc", planes, 1, LoopKind::kUnrolled), LoopOver("ow", lanes, 1, LoopKind::kVector)};
  nest.parts = {std::move(gather), std::move(multiply)};
  nest.tile_input_bytes = static_cast<double>((lanes + w.kw - 1) * w.kh * channels) * kBytes;
  nest.tile_weight_bytes = static_cast<double>(planes * channels * w.kh * w.kw) * kBytes;
  nest.tile_output_bytes = static_cast<double>(planes * lanes) * kBytes;
  return nest;
}

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
  const int vectors = kPortableLanes / DispatchedVectorFloats(cpu);
  return std::clamp<int64_t>((cpu.vector_registers() - vectors - 1) / vectors, 1, kPortableMaxTile);
}

bool FewChannelsPerGroup(const ConvWorkload& w) { return w.oc / w.g < 8 && w.oc != w.g; }

}  // namespace

LoopNest NestOf(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  if (s.config.over_width) return OverWidth(s);
  return OverChannels(s, IsDepthwise(w, s.in.BlockFor(w.ic), s.out.BlockFor(w.oc)));
}

PortableConfig ReadConfig(const Config& config) {
  PortableConfig c;
  c.ic_block = config.Get("ic_block");
  c.oc_block = config.Get("oc_block");
  c.over_width = config.Get("vector_over") == kOverWidth;
  c.ow_tile = config.Get("ow_tile");
  c.rows = config.Get("rows");
  return c;
}

namespace {

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

// A config without tuning.
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

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return MakeSchedule(w, ReadConfig(config), cpu.vector_floats());
}

}  // namespace
}  // namespace portable

const ConvTemplate& PortableTemplate() {
  static const ScheduleTemplate<portable::Schedule> instance({.name = "portable",
                                                              .supports = portable::Supports,
                                                              .space = portable::Space,
                                                              .preset = portable::Default,
                                                              .read = portable::ReadSchedule});
  return instance;
}

}  // namespace tilesmith
