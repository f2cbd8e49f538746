// The depthwise template's loops in words.
#include <algorithm>

#include "templates/depthwise/schedule.h"

namespace tilesmith::depthwise {
namespace {

const char* WeightsText(Weights weights) {
  switch (weights) {
    case Weights::kRegisters:
      return "weights of all taps in registers";
    case Weights::kRow:
      return "weights of one kernel row in registers";
    case Weights::kMemory:
      return "weights are operands of the FMAs";
  }
  return "";
}

}  // namespace

LoopPart PlaneLoops(const Schedule& g, int64_t vectors) {
  const ConvWorkload& w = g.rows.workload;
  const DepthwiseConfig& c = g.rows.config;
  const int64_t lanes = g.rows.vector_floats;
  const int64_t width = std::min(c.width_tile, w.ow);
  const LoopKind kernel_rows = c.unroll || c.pairs ? LoopKind::kUnrolled : LoopKind::kLoop;
  LoopPart part;
  part.loops = {LoopOver("oh", c.rows, c.row_tile, LoopKind::kLoop),
                LoopOver("ow", w.ow, width, LoopKind::kLoop, "register tiles")};
  part.loops.insert(g.rows.planes_in_tiles() ? part.loops.end() : part.loops.begin(),
                    LoopOver("c", vectors * lanes, lanes, LoopKind::kLoop, WeightsText(c.weights)));
  for (const Loop& loop : {LoopOver("kh", w.kh, 1, kernel_rows), LoopOver("kw", w.kw, 1, LoopKind::kUnrolled),
                           LoopOver("oh", c.row_tile, 1, LoopKind::kUnrolled, "register tile: rows"),
                           LoopOver("ow", width, 1, LoopKind::kUnrolled, "register tile: positions"),
                           LoopOver("c", lanes, 1, LoopKind::kVector)})
    part.loops.push_back(loop);
  part.body = c.pairs ? "sum += weights * input, both rows with two thirds of the multiplications"
                      : "sum += weights * input";
  return part;
}

LoopNest NestOf(const Schedule& g) {
  const ConvWorkload& w = g.rows.workload;
  const DepthwiseConfig& c = g.rows.config;
  const int64_t lanes = g.rows.vector_floats, width = std::min(c.width_tile, w.ow);
  LoopNest nest;
  nest.tasks = {
      LoopOver("mb", w.mb, 1, LoopKind::kTasks),
      LoopOver("c", g.vectors * lanes, c.vectors * lanes, LoopKind::kTasks, "vectors of channels of a task"),
      LoopOver("oh", w.oh, c.rows, LoopKind::kTasks, "output rows of a task")};
  nest.parts = {PlaneLoops(g, c.vectors)};
  const int64_t rows = std::min(w.ih, (c.row_tile - 1) * w.sh + (w.kh - 1) * (w.dh + 1) + 1);
  const int64_t columns = std::min(w.iw, (width - 1) * w.sw + (w.kw - 1) * (w.dw + 1) + 1);
  nest.tile_input_bytes = static_cast<double>(rows * columns * g.in.vector_bytes);
  nest.tile_weight_bytes = static_cast<double>(PlaneWeights(g.rows) * g.rows.vector_bytes());
  nest.tile_output_bytes = static_cast<double>(c.row_tile * width * g.out.vector_bytes);
  return nest;
}

}  // namespace tilesmith::depthwise
