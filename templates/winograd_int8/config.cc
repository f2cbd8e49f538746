#include "templates/winograd_int8/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "templates/base/config.h"
#include "templates/base/schedule_template.h"
#include "templates/base/window_plan.h"
#include "templates/int8/byte_conv.h"
#include "templates/int8/pixels.h"
#include "templates/winograd_int8/loops.h"

namespace tilesmith {
namespace winograd_int8 {
namespace {

constexpr int64_t kKeptBytes = 160 << 10;  // of windows, a part of the L2 cache
constexpr int64_t kMinTiles = 12;

// Four times the largest sum has to fit 32 bits, and a row of the smallest parts into memory.
bool Fits(const ConvWorkload& w) {
  constexpr double kMaxRowBytes = 64 << 20;
  const bool simple = w.kh == 3 && w.kw == 3 && w.sh == 1 && w.sw == 1 && w.dh == 0 && w.dw == 0 && w.g == 1;
  const double weight = w.bytes->weights == DataType::kI8 ? 128 : 255;
  const double largest = 4.0 * 9 * 255 * weight * static_cast<double>(w.ic);
  return simple && largest < 0x1p31 && LeastSeenBytes(w, w.ic) <= kMaxRowBytes;
}

std::string WhyInvalid(const ConvWorkload& w, const Target& cpu, const WinogradCut& preset,
                       const WinogradCut& cut) {
  if (cut == preset) return "";
  const WinogradPlan plan(w, cpu, cut);
  if (cut.pixels > plan.part_tiles())
    return fmt::format("width_tile {} exceeds the {} tiles of a task", cut.pixels, plan.part_tiles());
  const bool smaller = cut.tile_rows <= preset.tile_rows && cut.tile_columns <= preset.tile_columns;
  return smaller ? "" : WhyTooLarge(plan.ThreadBytes(), "scratch", cpu);
}

// The cut that a plan makes by itself, in numbers.
WinogradCut DefaultCut(const ConvWorkload& w, const Target& cpu) {
  const WinogradPlan plan(w, cpu);
  WinogradCut cut = plan.cut();
  cut.pixels = std::min(cut.pixels, plan.part_tiles());
  return cut;
}

struct WinogradInt8Config {
  int64_t ic_block = 0;  // x of the input's NCHW[x]c; 0 is NHWC
  int64_t oc_block = 0;  // x of the output's; 0 is NHWC
  WinogradCut cut;       // with no zeros
};

WinogradInt8Config ReadConfig(const Config& config) {
  return {.ic_block = config.Get("ic_block"),
          .oc_block = config.Get("oc_block"),
          .cut = {.tile_rows = config.Get("tile_rows"),
                  .tile_columns = config.Get("tile_columns"),
                  .pixels = config.Get("width_tile")}};
}

// Products of bytes (MultipliesBytes) are faster than what is saved here.
Support Supports(const ConvWorkload& w, const Target& cpu) {
  if (MultipliesBytes(w, cpu)) return Support::No("this CPU multiplies bytes, direct_int8 is faster");
  if (Fits(w)) return Support::Yes();
  return Support::No("is for 3x3 of stride 1, not grouped or dilated, of so few channels that sums fit");
}

ConfigSpace Space(const ConvWorkload& w, const Target& cpu) {
  const WinogradPlan plan(w, cpu);
  const WinogradCut preset = DefaultCut(w, cpu);
  std::vector<int64_t> pixels;
  for (int64_t value = 1; value <= QuantizedConvTilePixels(cpu.isa, false); ++value) pixels.push_back(value);
  std::vector<Knob> knobs = ByteLayoutKnobs(w);
  knobs.insert(
      knobs.end(),
      {{"tile_rows", PartSizes(plan.all_rows, preset.tile_rows), "rows of 2x2 tiles of a task"},
       {"tile_columns", PartSizes(plan.all_columns, preset.tile_columns), "columns of 2x2 tiles of a task"},
       {"width_tile", pixels, "register tile: tiles"}});
  return ConfigSpace(std::move(knobs), [=](const Config& config) -> std::string {
    return WhyInvalid(w, cpu, preset, ReadConfig(config).cut);
  });
}

Config Default(const ConvWorkload& w, const Target& cpu) {
  const WinogradCut cut = DefaultCut(w, cpu);
  Config config;
  config.Set("ic_block", 0);
  config.Set("oc_block", 0);
  config.Set("tile_rows", cut.tile_rows);
  config.Set("tile_columns", cut.tile_columns);
  config.Set("width_tile", cut.pixels);
  return config;
}

Schedule ReadSchedule(const ConvWorkload& workload, const Config& knobs, const Target& cpu) {
  const WinogradInt8Config config = ReadConfig(knobs);
  return {.workload = workload,
          .in = LayoutOfBlockKnob(config.ic_block).WithType(workload.bytes->in),
          .out = LayoutOfBlockKnob(config.oc_block).WithType(workload.bytes->out),
          .plan = WinogradPlan(workload, cpu, config.cut)};
}

}  // namespace

bool Pays(const ConvWorkload& w) {
  constexpr int64_t kMinChannels = 16;
  return w.ic >= kMinChannels && w.oc >= kMinChannels && w.mb * w.oh * w.ow >= 4 * kMinTiles;
}

WinogradPlan::WinogradPlan(const ConvWorkload& workload, const Target& cpu, const WinogradCut& cut)
    : conv(workload),
      lanes(QuantizedConvLanes(cpu.isa)),
      blocks(CeilDiv(workload.oc, lanes)),
      channels(RoundUp(workload.ic, lanes)),
      all_rows(CeilDiv(workload.oh, 2)),
      all_columns(CeilDiv(workload.ow, 2)),
      tile_rows(cut.tile_rows),
      tile_columns(cut.tile_columns),
      pixels(cut.pixels > 0 ? cut.pixels : QuantizedConvTilePixels(cpu.isa, false)) {
  if (tile_rows == 0) {
    const int64_t fit = std::max(kMinTiles, kKeptBytes / (kWinogradElements * channels * 2));
    tile_columns = CeilDiv(all_columns, CeilDiv(all_columns, fit));
    tile_rows = CeilDiv(all_rows, CeilDiv(all_rows, std::max<int64_t>(fit / tile_columns, 1)));
  }
  row_parts = CeilDiv(all_rows, tile_rows);
  column_parts = CeilDiv(all_columns, tile_columns);
}

TaskGrid WinogradPlan::Grid() const {
  TaskGrid grid{
      .images = conv.mb, .channels = blocks, .rows = row_parts * column_parts, .channels_inner = true};
  if (column_parts > 1) return TaskGrid::List(grid.tasks());
  grid.height = conv.oh;
  grid.part_units = 2 * tile_rows;
  return grid;
}

TaskGrid GridOf(const Schedule& s) { return s.plan.Grid(); }

LoopFeatures FeaturesOf(const Schedule& s) {
  const WinogradPlan& p = s.plan;
  const auto lanes = static_cast<double>(p.lanes), tiles = static_cast<double>(p.part_tiles()),
             tile = static_cast<double>(p.pixels), channels = static_cast<double>(p.channels);
  constexpr double kElements = kWinogradElements, kVectors = 2;
  LoopFeatures f;
  f.tasks = static_cast<double>(p.Grid().tasks());
  f.flops = 2 * f.tasks * kElements * tiles * channels * lanes;
  f.fma_per_load = kVectors * tile / (kVectors + tile);
  f.accumulators = kVectors * tile;
  f.weight_bytes = static_cast<double>(p.blocks) * kElements * channels * lanes * sizeof(int16_t);
  f.task_input_bytes = static_cast<double>(p.WindowBytes());
  f.task_weight_bytes = kElements * channels * lanes * sizeof(int16_t);
  f.task_output_bytes = 4 * tiles * lanes * (s.workload.bytes->out == DataType::kF32 ? sizeof(float) : 1);
  f.scratch_bytes = static_cast<double>(p.ThreadBytes());
  return f;
}

LoopNest NestOf(const Schedule& s) {
  const WinogradPlan& p = s.plan;
  LoopNest nest;
  nest.tasks = {LoopOver("mb", p.conv.mb, 1, LoopKind::kTasks),
                LoopOver("tiles", p.row_parts * p.column_parts * p.part_tiles(), p.part_tiles(),
                         LoopKind::kTasks, "parts of an image, in tiles of 2x2 outputs"),
                LoopOver("oc", p.conv.oc, p.lanes, LoopKind::kTasks)};
  LoopPart in = {"transform the input, once for all blocks of channels: windows of 4x4",
                 {},
                 "V[xi] = 16 sums of a window's input - zero point",
                 0};
  in.loops = {LoopOver("tiles", p.part_tiles(), 1, LoopKind::kLoop),
              LoopOver("ic", p.channels, p.lanes, LoopKind::kLoop),
              LoopOver("ic", p.lanes, 1, LoopKind::kVector)};
  LoopPart multiply = {"multiply: one matrix product for each element xi of the windows",
                       {},
                       "sum += weights * V[xi]",
                       4.0 * 9 / kWinogradElements};
  multiply.loops = {LoopOver("xi", kWinogradElements, 1, LoopKind::kLoop),
                    LoopOver("tiles", p.part_tiles(), p.pixels, LoopKind::kLoop, "register tiles"),
                    LoopOver("ic", p.conv.ic, 2, LoopKind::kLoop),
                    LoopOver("tiles", p.pixels, 1, LoopKind::kUnrolled, "register tile"),
                    LoopOver("oc", p.lanes, 1, LoopKind::kVector),
                    LoopOver("ic", 2, 1, LoopKind::kVector, "summed by one instruction")};
  LoopPart out = {
      "transform back", {}, "2x2 outputs = a quarter of the transformed sums, rounded to bytes", 0};
  out.loops = {LoopOver("tiles", p.part_tiles(), 1, LoopKind::kLoop),
               LoopOver("oc", p.lanes, 1, LoopKind::kVector)};
  nest.parts = {std::move(in), std::move(multiply), std::move(out)};
  const auto tile = static_cast<double>(p.pixels), lanes = static_cast<double>(p.lanes),
             channels = static_cast<double>(p.conv.ic);
  nest.tile_input_bytes = tile * channels * sizeof(int16_t);
  nest.tile_weight_bytes = channels * lanes * sizeof(int16_t);
  nest.tile_output_bytes = tile * lanes * sizeof(int32_t);
  return nest;
}

}  // namespace winograd_int8

const ConvTemplate& WinogradInt8Template() {
  static const ScheduleTemplate<winograd_int8::Schedule> instance({.name = "winograd_int8",
                                                                   .type = DataType::kI8,
                                                                   .supports = winograd_int8::Supports,
                                                                   .space = winograd_int8::Space,
                                                                   .preset = winograd_int8::Default,
                                                                   .read = winograd_int8::ReadSchedule,
                                                                   .shifts_blocks = true});
  return instance;
}

}  // namespace tilesmith
