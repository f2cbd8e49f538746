// The loops of templates by AMX tiles in words.
#include <algorithm>

#include "templates/amx/schedule.h"

namespace tilesmith::amx {

LoopNest NestOf(const Schedule& s) {
  const WindowPlan& p = s.plan;
  const ConvWorkload& w = p.conv;
  const int64_t rows = std::min(p.tile_rows, w.oh), columns = std::min(p.tile_columns, w.ow);
  const int64_t inputs = p.group_in, step = std::min(p.step_words * p.word, inputs);
  const bool bytes = p.number_bytes == 1;
  LoopNest nest;
  nest.tasks = {LoopOver("mb", w.mb, 1, LoopKind::kTasks),
                LoopOver("oh", w.oh, rows, LoopKind::kTasks, "output rows of a task"),
                LoopOver("ow", w.ow, columns, LoopKind::kTasks, "output columns of a task"),
                LoopOver("g", w.g, 1, LoopKind::kTasks),
                LoopOver("oc", w.oc / w.g, p.lanes, LoopKind::kTasks)};
  if (!p.blocks_inner) std::rotate(nest.tasks.begin() + 1, nest.tasks.begin() + 3, nest.tasks.end());
  if (!s.as_it_is) {
    LoopPart copy = {"copy the input that the tile sees, padding included",
                     {},
                     bytes ? "scratch = input" : "scratch = bf16(input)",
                     0};
    copy.loops = {LoopOver("ih", p.RowsSeenBy(rows), 1, LoopKind::kLoop),
                  LoopOver("iw", p.ColumnsSeenBy(columns), 1, LoopKind::kLoop),
                  LoopOver("ic", inputs, 1, LoopKind::kVector)};
    nest.parts.push_back(std::move(copy));
  }
  LoopPart multiply = {
      "multiply", {}, bytes ? "sum += weights * input; then rounded to a byte" : "sum += weights * input", 1};
  multiply.loops = {LoopOver("oh", rows, 1, LoopKind::kLoop),
                    LoopOver("ow", columns, p.pixels, LoopKind::kLoop, "two tiles of positions"),
                    LoopOver("kh", w.kh, 1, LoopKind::kLoop),
                    LoopOver("kw", w.kw, 1, LoopKind::kLoop),
                    LoopOver("ic", inputs, step, LoopKind::kLoop, "two tiles of input, two of weights"),
                    LoopOver("ow", p.pixels, 1, LoopKind::kVector),
                    LoopOver("oc", p.lanes, 1, LoopKind::kVector),
                    LoopOver("ic", step, 1, LoopKind::kVector, "four instructions for all of them")};
  nest.parts.push_back(std::move(multiply));
  const auto number_bytes = static_cast<double>(p.number_bytes);
  const auto terms = static_cast<double>(inputs * w.kh * w.kw);
  const int64_t seen = (p.pixels - 1) * p.column_stride + p.window_columns;
  nest.tile_input_bytes = static_cast<double>(p.window_rows * seen * inputs) * number_bytes;
  nest.tile_weight_bytes = static_cast<double>(p.lanes) * terms * number_bytes;
  nest.tile_output_bytes = static_cast<double>(p.lanes * p.pixels * s.out.element_bytes());
  return nest;
}

}  // namespace tilesmith::amx
