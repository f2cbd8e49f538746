// The few_outputs template's loops in words.
#include <algorithm>

#include "templates/few_outputs/schedule.h"

namespace tilesmith::few_outputs {

LoopNest NestOf(const Schedule& g) {
  const ConvWorkload& w = g.workload;
  const FewOutputsConfig& c = g.config;
  const int64_t width = c.vectors * c.lanes;
  LoopNest nest;
  nest.tasks = {LoopOver("mb", w.mb, 1, LoopKind::kTasks),
                LoopOver("oh", w.oh, g.rows_per_task(), LoopKind::kTasks, "output rows of a task"),
                LoopOver("oc", w.oc, c.outputs, LoopKind::kTasks)};
  LoopPart part;
  part.loops = {LoopOver("oh", g.rows_per_task(), c.tile_rows, LoopKind::kLoop),
                LoopOver("ow", w.ow, width, LoopKind::kLoop, "register tiles"),
                LoopOver("ic", w.ic, c.ic_unroll, LoopKind::kLoop),
                LoopOver("ic", c.ic_unroll, 1, LoopKind::kUnrolled),
                LoopOver("kh", w.kh, 1, LoopKind::kUnrolled),
                LoopOver("kw", w.kw, 1, LoopKind::kUnrolled),
                LoopOver("oh", c.tile_rows, 1, LoopKind::kUnrolled, "register tile: rows"),
                LoopOver("ow", width, c.lanes, LoopKind::kUnrolled, "register tile: vectors of a row"),
                LoopOver("oc", c.outputs, 1, LoopKind::kUnrolled, "register tile: channels"),
                LoopOver("ow", c.lanes, 1, LoopKind::kVector)};
  if (c.prefetch != Prefetch::kNone) part.loops[1].note += ", which fetch the rows of the next ones below";
  part.body = "sum += weight, broadcast, * input";
  nest.parts = {std::move(part)};
  constexpr double kBytes = sizeof(float);
  const int64_t rows = std::min(w.ih, (c.tile_rows - 1) * w.sh + (w.kh - 1) * (w.dh + 1) + 1);
  const int64_t columns = std::min(w.iw, width + (w.kw - 1) * (w.dw + 1));
  nest.tile_input_bytes = static_cast<double>(rows * columns * w.ic) * kBytes;
  nest.tile_weight_bytes = static_cast<double>(c.outputs * w.ic * w.kh * w.kw) * kBytes;
  nest.tile_output_bytes = static_cast<double>(c.outputs * c.tile_rows * std::min(width, w.ow)) * kBytes;
  return nest;
}

}  // namespace tilesmith::few_outputs
