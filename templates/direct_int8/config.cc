#include "templates/direct_int8/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "templates/base/config.h"
#include "templates/base/schedule_template.h"
#include "templates/direct_int8/depthwise_kernel.h"
#include "templates/direct_int8/depthwise_loops.h"
#include "templates/int8/byte_conv.h"
#include "templates/int8/pixels.h"

namespace tilesmith {
namespace direct_int8 {
namespace {

// How many groups are computed as one, whose weights between them are zeros: such that their output channels
// have room in 16 lanes, a vector or two of them.
int64_t MergedGroups(const ConvWorkload& w, const WindowForm& form) {
  constexpr int64_t kMostChannels = 16;
  constexpr double kMostWindowBytes = 1 << 20;  // of the widened input
  if (form.depthwise || form.dots) return 1;
  int64_t merged = std::min(kMostChannels, form.lanes) / (w.oc / w.g);
  const auto fits = [&](int64_t groups) {
    return w.g % groups == 0 && LeastSeenBytes(w, groups * (w.ic / w.g)) <= kMostWindowBytes;
  };
  while (merged > 1 && !fits(merged)) --merged;
  return std::max<int64_t>(merged, 1);
}

// At most as many as the form's, such that the last ones that are computed at once are hardly fewer.
int64_t EvenPixels(const WindowPlan& plan) {
  const bool whole_rows = plan.tile_columns == plan.conv.ow;
  const int64_t count = plan.tile_columns * (whole_rows ? plan.tile_rows : 1);
  return CeilDiv(count, CeilDiv(count, plan.pixels));
}

// How the work is cut. The plan is of fewer groups than the workload where several small ones are computed as
// one, with zeros for weights between them.
WindowForm FormOf(const ConvWorkload& w, const Target& cpu) {
  constexpr int64_t kLeastTerms = 64;  // fewer cost less than their sum at the end
  const bool bytes = MultipliesBytes(w, cpu);
  const int64_t in = w.ic / w.g, out = w.oc / w.g;
  // What four sums of a pixel cost at the end a single tap does not earn.
  const bool is_small = in == 4 || in == 8 || (in == 16 && w.kh * w.kw > 1);
  const bool small = is_small && in == out && w.g % (kGroupedPixelBytes / in) == 0;
  const bool dots = bytes && w.oc / w.g <= kMostDots && w.ic / w.g * w.kh * w.kw >= kLeastTerms;
  const bool grouped = bytes && !dots && small;
  return {.number_bytes = bytes ? 1 : 2,
          .lanes = QuantizedConvLanes(cpu.isa),
          .pixels = dots      ? kDotPixels
                    : grouped ? GroupedPixels(in / 4)
                              : QuantizedConvTilePixels(cpu.isa, bytes),
          .depthwise = IsDepthwise(w),
          .dots = dots,
          .group_words = grouped ? in / 4 : 0};
}

WindowPlan PlanOf(const ConvWorkload& w, const Target& cpu, const WindowCut& cut = {}) {
  const WindowForm form = FormOf(w, cpu);
  ConvWorkload merged = w;
  merged.g /= MergedGroups(w, form);
  WindowPlan plan(merged, form, cpu.cores, cut);
  if (cut.pixels == 0 && form.chooses_pixels()) plan.pixels = EvenPixels(plan);
  return plan;
}

// The cut that a plan makes by itself, in numbers.
WindowCut DefaultCut(const ConvWorkload& w, const Target& cpu) {
  if (DepthwiseFits(w, cpu))
    return {.tile_rows = DepthwiseRows(w, cpu.cores), .tile_columns = w.ow, .pixels = 1};
  return PlanOf(w, cpu).cut();
}

std::string WhyInvalid(const ConvWorkload& w, const Target& cpu, const WindowCut& preset,
                       const WindowCut& cut) {
  if (cut == preset) return "";
  const int64_t pixels = cut.tile_rows * cut.tile_columns;
  if (cut.pixels > pixels && FormOf(w, cpu).chooses_pixels())
    return fmt::format("width_tile {} exceeds the {} pixels of a task", cut.pixels, pixels);
  return WhyNoGoodCut(PlanOf(w, cpu, cut), preset, cpu);
}

struct DirectInt8Config {
  int64_t ic_block = 0;  // x of the input's NCHW[x]c; 0 is NHWC
  int64_t oc_block = 0;  // x of the output's; 0 is NHWC
  WindowCut cut;         // with no zeros
};

DirectInt8Config ReadConfig(const Config& config) {
  return {.ic_block = config.Get("ic_block"),
          .oc_block = config.Get("oc_block"),
          .cut = {.tile_rows = config.Get("tile_rows"),
                  .tile_columns = config.Get("tile_columns"),
                  .pixels = config.Get("width_tile"),
                  .blocks_inner = config.Get("oc_inner") != 0}};
}

Support Supports(const ConvWorkload& w, const Target&) {
  if (CopiesFit(w)) return Support::Yes();
  return Support::No("what one output sees is too large to be widened");
}

ConfigSpace Space(const ConvWorkload& w, const Target& cpu) {
  const bool fixed = DepthwiseFits(w, cpu);
  const WindowCut preset = DefaultCut(w, cpu);
  const ConvWorkload conv = fixed ? w : PlanOf(w, cpu).conv;
  std::vector<int64_t> pixels = {1}, columns = {w.ow}, inner = {1};
  if (!fixed) {
    const WindowForm form = FormOf(w, cpu);
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

Schedule ReadSchedule(const ConvWorkload& workload, const Config& knobs, const Target& cpu) {
  const DirectInt8Config config = ReadConfig(knobs);
  return {.workload = workload,
          .in = LayoutOfBlockKnob(config.ic_block).WithType(workload.bytes->in),
          .out = LayoutOfBlockKnob(config.oc_block).WithType(workload.bytes->out),
          .plan = PlanOf(workload, cpu, config.cut),
          .depthwise_by_vnni = DepthwiseFits(workload, cpu)};
}

}  // namespace

int64_t Schedule::lanes() const {
  return depthwise_by_vnni                   ? kDepthwiseLanes
         : plan.dots || plan.group_words > 0 ? plan.group_out
                                             : plan.lanes;
}
int64_t Schedule::groups() const {
  return depthwise_by_vnni ? CeilDiv(workload.oc, kDepthwiseLanes) : plan.groups;
}
int64_t Schedule::blocks() const { return depthwise_by_vnni ? 1 : plan.blocks; }

TaskGrid GridOf(const Schedule& s) {
  return s.depthwise_by_vnni ? DepthwiseGrid(s.workload, s.plan.tile_rows) : s.plan.Grid();
}

LoopFeatures FeaturesOf(const Schedule& s) {
  const WindowPlan& p = s.plan;
  const ConvWorkload& w = s.workload;
  const double out_bytes = w.bytes->out == DataType::kF32 ? sizeof(float) : 1;
  const int64_t rows = std::min(p.tile_rows, s.conv().oh), columns = std::min(p.tile_columns, s.conv().ow);
  const auto pixels = static_cast<double>(rows * columns), lanes = static_cast<double>(s.lanes());
  const double vectors = p.depthwise         ? 1
                         : p.dots            ? lanes
                         : p.group_words > 0 ? static_cast<double>(p.group_words)
                                             : 2,
               tile = static_cast<double>(p.pixels);
  const int64_t channels = p.depthwise ? s.lanes() : p.group_in;
  LoopFeatures f;
  f.flops = 2.0 * static_cast<double>(w.mb * s.groups() * s.blocks() * w.oh * w.ow) * lanes *
            static_cast<double>(s.terms());
  f.fma_per_load = p.depthwise ? 0.5 : vectors * tile / (vectors + tile);
  f.accumulators = (p.depthwise ? 2 : vectors) * tile;
  f.weight_bytes = static_cast<double>(w.oc * s.terms() * p.number_bytes);
  f.tasks = static_cast<double>(GridOf(s).tasks());
  f.task_input_bytes = static_cast<double>(p.phases() * p.RowsSeenBy(rows) * p.ColumnsSeenBy(columns)) *
                       static_cast<double>(channels);
  f.task_weight_bytes = lanes * static_cast<double>(s.terms() * p.number_bytes);
  f.task_output_bytes = pixels * lanes * out_bytes;
  f.scratch_bytes = static_cast<double>(p.ThreadBytes());
  return f;
}

namespace {

// The loops of few outputs go over vectors of 64 of a run's numbers.
std::vector<Loop> DotLoops(const Schedule& s) {
  const WindowPlan& p = s.plan;
  const ConvWorkload& w = s.conv();
  return {LoopOver("oh", std::min(p.tile_rows, w.oh), 1, LoopKind::kLoop),
          LoopOver("ow", std::min(p.tile_columns, w.ow), p.pixels, LoopKind::kLoop, "register tiles"),
          LoopOver("kh", w.kh, 1, LoopKind::kLoop),
          LoopOver("kw", w.kw, p.run_columns, LoopKind::kLoop),
          LoopOver("ow", p.pixels, 1, LoopKind::kUnrolled, "register tile: pixels"),
          LoopOver("oc", s.lanes(), 1, LoopKind::kUnrolled),
          LoopOver("kw", p.run_columns, 1, LoopKind::kVector, "adjacent in the widened input"),
          LoopOver("ic", w.ic / w.g, 1, LoopKind::kVector, "64 numbers at a time, summed at the end")};
}

}  // namespace

LoopNest NestOf(const Schedule& s) {
  const WindowPlan& p = s.plan;
  const ConvWorkload& w = s.conv();
  const int64_t rows = std::min(p.tile_rows, w.oh), columns = std::min(p.tile_columns, w.ow);
  const int64_t group_channels = p.depthwise ? 1 : w.oc / w.g, inputs = p.depthwise ? 1 : w.ic / w.g;
  const int64_t terms = p.depthwise ? 1 : s.inputs();
  LoopNest nest;
  nest.tasks = {LoopOver("mb", w.mb, 1, LoopKind::kTasks),
                LoopOver("oh", w.oh, rows, LoopKind::kTasks, "output rows of a task"),
                LoopOver("ow", w.ow, columns, LoopKind::kTasks, "output columns of a task")};
  if (p.depthwise) {
    nest.tasks.push_back(LoopOver("c", w.oc, s.lanes(), LoopKind::kTasks));
  } else {
    nest.tasks.push_back(LoopOver("g", w.g, 1, LoopKind::kTasks));
    nest.tasks.push_back(LoopOver("oc", group_channels, p.lanes, LoopKind::kTasks));
  }
  if (!p.blocks_inner) std::rotate(nest.tasks.begin() + 1, nest.tasks.begin() + 3, nest.tasks.end());
  LoopPart widen = {
      "widen the input that the tile sees, padding included", {}, "scratch = input - zero point", 0};
  widen.loops = {LoopOver("ih", p.RowsSeenBy(rows), 1, LoopKind::kLoop),
                 LoopOver("iw", p.ColumnsSeenBy(columns), 1, LoopKind::kLoop),
                 LoopOver(p.depthwise ? "c" : "ic", p.depthwise ? s.lanes() : inputs, 1, LoopKind::kLoop)};
  LoopPart multiply = {"multiply", {}, "sum += weights * input; then rounded to a byte", 1};
  const int64_t word = s.depthwise_by_vnni || p.word == 4 ? 4 : 2;
  multiply.loops = {LoopOver("oh", rows, 1, LoopKind::kLoop),
                    LoopOver("ow", columns, p.pixels, LoopKind::kLoop, "register tiles"),
                    LoopOver("kh", w.kh, 1, LoopKind::kLoop),
                    LoopOver("kw", w.kw, 1, LoopKind::kLoop),
                    LoopOver("ic", terms, std::min(word, terms), LoopKind::kLoop),
                    LoopOver("ow", p.pixels, 1, LoopKind::kUnrolled, "register tile: pixels"),
                    LoopOver(p.depthwise ? "c" : "oc", s.lanes(), 1, LoopKind::kVector),
                    LoopOver("ic", std::min(word, terms), 1, LoopKind::kVector, "summed by one instruction")};
  if (p.depthwise) multiply.loops.pop_back();
  if (p.dots) multiply.loops = DotLoops(s);
  nest.parts = {std::move(widen), std::move(multiply)};
  const int64_t seen = (p.pixels - 1) * p.column_stride + p.window_columns;
  const double numbers = static_cast<double>(p.number_bytes);
  nest.tile_input_bytes =
      static_cast<double>(p.window_rows * seen * (p.depthwise ? s.lanes() : inputs)) * numbers;
  nest.tile_weight_bytes = static_cast<double>(s.lanes() * s.terms()) * numbers;
  nest.tile_output_bytes = static_cast<double>(s.lanes() * p.pixels) *
                           (s.workload.bytes->out == DataType::kF32 ? sizeof(float) : 1);
  return nest;
}

}  // namespace direct_int8

const ConvTemplate& DirectInt8Template() {
  static const ScheduleTemplate<direct_int8::Schedule> instance({.name = "direct_int8",
                                                                 .type = DataType::kI8,
                                                                 .supports = direct_int8::Supports,
                                                                 .space = direct_int8::Space,
                                                                 .preset = direct_int8::Default,
                                                                 .read = direct_int8::ReadSchedule,
                                                                 .shifts_blocks = true});
  return instance;
}

}  // namespace tilesmith
