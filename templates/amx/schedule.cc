#include "templates/amx/schedule.h"

#include <algorithm>

#include "templates/amx/strips.h"
#include "templates/base/loop_features.h"

namespace tilesmith::amx {

Schedule MakeSchedule(const ConvWorkload& workload, const AmxConfig& config, const Target& cpu,
                      int64_t number_bytes, DataType in_type, DataType out_type) {
  return {.workload = workload,
          .config = config,
          .in = LayoutOfBlockKnob(config.ic_block).WithType(in_type),
          .out = LayoutOfBlockKnob(config.oc_block).WithType(out_type),
          .plan = WindowPlan(workload, FormOf(number_bytes), cpu.cores, config.cut)};
}

bool AreInPlace(const Schedule& s) {
  const WindowPlan& plan = s.plan;
  const bool whole_steps = plan.pixel_numbers == plan.group_in;
  const bool in_steps = s.in.is_nhwc() || s.config.ic_block == kTileWords * plan.word;
  return plan.single_pixels() && whole_steps && in_steps &&
         (s.in.is_nhwc() || plan.group_in % s.config.ic_block == 0);
}

int64_t Schedule::position_tiles() const {
  int64_t tiles = 0;
  ForEachStrip(
      plan, std::min(plan.tile_rows, plan.conv.oh), std::min(plan.tile_columns, plan.conv.ow),
      [&](const WindowStrip& strip) { tiles += CeilDiv(strip.positions, kTileRows); },
      [](const WindowSegment&) {});
  return tiles;
}

int64_t Schedule::steps() const {
  return static_cast<int64_t>(plan.runs.size()) * plan.run_length / plan.word / plan.step_words;
}

TaskGrid GridOf(const Schedule& s) { return s.plan.Grid(); }

LoopFeatures FeaturesOf(const Schedule& s) {
  const WindowPlan& p = s.plan;
  const ConvWorkload& w = s.workload;
  const int64_t rows = std::min(p.tile_rows, p.conv.oh), columns = std::min(p.tile_columns, p.conv.ow);
  const double number_bytes = static_cast<double>(p.number_bytes);
  const auto terms = static_cast<double>(w.ic / w.g * w.kh * w.kw), lanes = static_cast<double>(p.lanes);
  LoopFeatures f;
  f.flops = 2.0 * static_cast<double>(w.mb * p.groups * p.blocks * w.oh * w.ow) * lanes * terms;
  f.fma_per_load = 1;
  f.accumulators = static_cast<double>(p.pixels);
  f.weight_bytes = static_cast<double>(w.oc) * terms * number_bytes;
  f.tasks = static_cast<double>(GridOf(s).tasks());
  f.task_input_bytes =
      static_cast<double>(p.phases() * p.RowsSeenBy(rows) * p.ColumnsSeenBy(columns) * p.group_in) *
      number_bytes;
  f.task_weight_bytes = lanes * terms * number_bytes;
  f.task_output_bytes =
      static_cast<double>(rows * columns) * lanes * static_cast<double>(s.out.element_bytes());
  f.scratch_bytes = s.as_it_is ? 0 : static_cast<double>(p.ThreadBytes());
  return f;
}

// Instructions take 16 cycles, or as many as a tile of weights takes from the second-level cache; sums are
// stored by vectors, some cycles each. What tasks share is copied once.
double CyclesOf(const Schedule& s, const Target& cpu) {
  constexpr double kProductCycles = 16, kStoreCycles = 4, kTaskCycles = 200;
  const WindowPlan& p = s.plan;
  const LoopFeatures f = FeaturesOf(s);
  const auto tiles = static_cast<double>(s.position_tiles()), steps = static_cast<double>(s.steps());
  const double channels = static_cast<double>(p.groups * p.blocks);
  const double sums = tiles * static_cast<double>(p.lanes);  // vectors of a task
  const double copied = s.as_it_is ? 0 : f.task_input_bytes / kL3BytesPerCycle;
  const double sharing = p.blocks_inner ? static_cast<double>(p.blocks) : 1;
  const double task =
      tiles * 2 * steps * kProductCycles + sums * kStoreCycles + copied / sharing + kTaskCycles;
  const double tasks = std::ceil(static_cast<double>(s.workload.mb * p.tiles()) * channels / cpu.cores);
  return tasks * task + f.weight_bytes / kMemoryBytesPerCycle;
}

}  // namespace tilesmith::amx
