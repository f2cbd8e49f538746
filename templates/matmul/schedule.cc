#include "templates/matmul/schedule.h"

#include <algorithm>
#include <utility>

#include "layouts/base/sizes.h"
#include "templates/base/image_strides.h"

namespace tilesmith::matmul {
namespace {

double Bytes(int64_t floats) { return static_cast<double>(floats * kFloatBytes); }

}  // namespace

int64_t Schedule::row_panels() const { return CeilDiv(workload.oh, config.panel_rows); }
int64_t Schedule::column_panels() const { return CeilDiv(workload.oc, config.panel_columns); }

TaskGrid GridOf(const Schedule& s) {
  return TaskGrid::List(s.workload.mb * s.row_panels() * s.column_panels());
}

LoopFeatures FeaturesOf(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  const MatMulSchedule& c = s.config;
  const int64_t rows = CeilDiv(w.oh, s.row_panels()), columns = std::min(w.oc, c.panel_columns);
  const int64_t terms = std::min(w.ic, c.panel_terms);
  LoopFeatures f;
  f.flops =
      2.0 * static_cast<double>(w.mb * w.oh * RoundUp(w.oc, s.vector_floats)) * static_cast<double>(w.ic);
  f.accumulators = static_cast<double>(c.tile_rows * c.tile_vectors);
  f.fma_per_load = f.accumulators / static_cast<double>(c.tile_rows + c.tile_vectors);
  f.tasks = static_cast<double>(GridOf(s).tasks());
  f.task_input_bytes = Bytes(rows * w.ic);
  f.task_weight_bytes = Bytes(columns * w.ic);
  f.task_output_bytes = Bytes(rows * columns);
  f.output_passes = static_cast<double>(CeilDiv(w.ic, c.panel_terms));
  f.scratch_bytes = Bytes((rows + terms) * c.panel_columns + (c.pack_left ? terms * rows : 0));
  return f;
}

LoopNest NestOf(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  const MatMulSchedule& c = s.config;
  const int64_t rows = CeilDiv(w.oh, s.row_panels()), columns = std::min(w.oc, c.panel_columns);
  const int64_t terms = std::min(w.ic, c.panel_terms), tile_rows = std::min<int64_t>(rows, c.tile_rows);
  const int64_t vectors = std::min<int64_t>(CeilDiv(columns, s.vector_floats), c.tile_vectors);
  const int64_t width = vectors * s.vector_floats;
  LoopNest nest;
  nest.tasks = {LoopOver("mb", w.mb, 1, LoopKind::kTasks), LoopOver("m", w.oh, rows, LoopKind::kTasks),
                LoopOver("n", w.oc, columns, LoopKind::kTasks)};
  if (c.rows_inner) std::swap(nest.tasks[1], nest.tasks[2]);
  LoopPart part;
  std::string packed = c.pack_right == Packing::kAlways ? "the right side is packed" : "";
  if (c.pack_left) packed += packed.empty() ? "the left side is packed" : ", the left one too";
  part.loops = {LoopOver("k", w.ic, terms, LoopKind::kLoop, packed),
                LoopOver("n", columns, width, LoopKind::kLoop, "register tiles"),
                LoopOver("m", rows, tile_rows, LoopKind::kLoop, "register tiles"),
                LoopOver("k", terms, 1, LoopKind::kLoop),
                LoopOver("m", tile_rows, 1, LoopKind::kUnrolled, "register tile: rows"),
                LoopOver("n", width, s.vector_floats, LoopKind::kUnrolled, "register tile: vectors"),
                LoopOver("n", s.vector_floats, 1, LoopKind::kVector)};
  part.body = "sum += left, broadcast, * right";
  nest.parts = {std::move(part)};
  nest.tile_input_bytes = Bytes(tile_rows * terms);
  nest.tile_weight_bytes = Bytes(width * terms);
  nest.tile_output_bytes = Bytes(tile_rows * width);
  return nest;
}

}  // namespace tilesmith::matmul
