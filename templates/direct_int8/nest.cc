// The direct_int8 template's loops in words.
#include <algorithm>

#include "templates/direct_int8/schedule.h"

namespace tilesmith::direct_int8 {
namespace {

// Of few outputs: vectors of 64 of a run's numbers.
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

}  // namespace tilesmith::direct_int8
