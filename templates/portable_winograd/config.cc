#include "templates/portable_winograd/config.h"

#include <algorithm>

#include "layouts/base/sizes.h"
#include "templates/base/schedule_template.h"
#include "templates/portable_winograd/tile_loops.h"
#include "templates/winograd/config.h"
#include "templates/winograd/schedule.h"
#include "templates/winograd/transforms.h"

namespace tilesmith {
namespace portable_winograd {

TaskGrid GridOf(const Schedule& s) {
  return {.images = s.workload.mb,
          .rows = CeilDiv(s.workload.oh, s.tile),
          .height = s.workload.oh,
          .part_units = s.tile};
}

namespace {

constexpr double kBytes = sizeof(float);
constexpr int64_t kLanes = kWinogradLanes;

}  // namespace

LoopFeatures FeaturesOf(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  const int64_t window = winograd::WindowOf(s.tile, w.sh), rows = CeilDiv(w.oh, s.tile);
  const auto channels = static_cast<double>(w.ic) * static_cast<double>(w.oc);
  const auto elements = static_cast<double>(window * window);
  const auto tiles = static_cast<double>(w.mb * rows * CeilDiv(w.ow, s.tile));
  LoopFeatures f;
  f.flops = 2 * tiles * elements * channels;
  f.accumulators = f.fma_per_load = 1;
  f.weight_bytes = f.task_weight_bytes = elements * channels * kBytes;
  f.tasks = static_cast<double>(w.mb * rows);
  f.task_input_bytes = InputBytes(w, s.tile, w.ic);
  f.task_output_bytes = static_cast<double>(s.tile * w.ow * w.oc) * kBytes;
  f.scratch_bytes = elements * static_cast<double>(w.ic) * kBytes;
  return f;
}

LoopNest NestOf(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  const int64_t window = winograd::WindowOf(s.tile, w.sh);
  LoopNest nest;
  nest.tasks = {LoopOver("mb", w.mb, 1, LoopKind::kTasks),
                LoopOver("tile row", CeilDiv(w.oh, s.tile), 1, LoopKind::kTasks)};
  LoopPart part;
  part.loops = {LoopOver("tile", CeilDiv(w.ow, s.tile), 1, LoopKind::kLoop),
                LoopOver("oc", w.oc, kLanes, LoopKind::kLoop),
                LoopOver("xi", window * window, 1, LoopKind::kLoop, "elements of the transformed window"),
                LoopOver("ic", w.ic, 1, LoopKind::kLoop), LoopOver("oc", kLanes, 1, LoopKind::kVector)};
  part.body = "sum += transformed weights * transformed input";
  part.covers = 9.0 * static_cast<double>(s.tile * s.tile) / static_cast<double>(window * window);
  nest.parts = {std::move(part)};
  const auto element_channels = static_cast<double>(window * window * w.ic);
  nest.tile_input_bytes = element_channels * kBytes;
  nest.tile_weight_bytes = element_channels * kLanes * kBytes;
  nest.tile_output_bytes = static_cast<double>(s.tile * s.tile * kLanes) * kBytes;
  return nest;
}

namespace {

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target&) {
  return {w, LayoutOfBlockKnob(config.Get("ic_block")), LayoutOfBlockKnob(config.Get("oc_block")),
          config.Get("tile")};
}

// Wherever generated code computes it, that does; and where any order will do, the portable template.
Support Supports(const ConvWorkload& w, const Target& cpu) {
  if (!cpu.reproducible) return Support::No("is for results that are reproducible without generated code");
  if (OrderTile(w) == 0) return Support::No("no convolution that is reproducible by Winograd's algorithm");
  if (ArchitectureOf(cpu.isa) != Architecture::kAny && WinogradTemplate().Supports(w, cpu).ok)
    return Support::No("the winograd template generates code for this CPU");
  return Support::Yes();
}

ConfigSpace Space(const ConvWorkload& w, const Target&) {
  const auto blocks = [](int64_t channels) {
    std::vector<int64_t> values = {0, 1, 8, 16, 32};
    if (channels <= 16) values.pop_back();
    return values;
  };
  return ConfigSpace({{"ic_block", blocks(w.ic), "channels per block of the input's layout; 0 is NHWC"},
                      {"oc_block", blocks(w.oc), "channels per block of the output's layout; 0 is NHWC"},
                      {"tile", {OrderTile(w)}, "outputs of a tile along each axis"}},
                     [](const Config&) { return std::string(); });
}

Config Default(const ConvWorkload& w, const Target& cpu) {
  Config config;
  config.Set("ic_block", std::max(cpu.vector_floats(), 8));
  config.Set("oc_block", std::max(cpu.vector_floats(), 8));
  config.Set("tile", OrderTile(w));
  return config;
}

}  // namespace
}  // namespace portable_winograd

const ConvTemplate& PortableWinogradTemplate() {
  static const ScheduleTemplate<portable_winograd::Schedule> instance(
      {.name = "portable_winograd",
       .supports = portable_winograd::Supports,
       .space = portable_winograd::Space,
       .preset = portable_winograd::Default,
       .read = portable_winograd::ReadSchedule,
       .order = Order::kWinograd,
       .error_factor = winograd::ErrorFactor});
  return instance;
}

}  // namespace tilesmith
