// The three launches in words.
#include <algorithm>

#include "templates/cuda_winograd/schedule.h"

namespace tilesmith::cuda_winograd {

LoopNest NestOf(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  const cuda_gemm::Tile& t = s.product.tile;
  const int64_t m = s.transforms->tile;
  LoopNest nest;
  LoopPart input = {"transform the input", {}, "V = B^T d B", 0};
  input.loops = {LoopOver("tile", s.tiles(), 1, LoopKind::kTasks), LoopOver("ic", w.ic, 1, LoopKind::kTasks)};
  LoopPart product = {"multiply", {}, "M += U * V", 1};
  product.loops = {LoopOver("xi", s.points(), 1, LoopKind::kTasks),
                   LoopOver("oc", w.oc, t.tile_f, LoopKind::kTasks),
                   LoopOver("tile", s.tiles(), t.tile_x, LoopKind::kTasks),
                   LoopOver("ic", w.ic, t.tile_rc, LoopKind::kLoop, "in shared memory"),
                   LoopOver("oc", std::min(t.tile_f, w.oc), t.part_f, LoopKind::kVector, "threads"),
                   LoopOver("tile", std::min(t.tile_x, s.tiles()), t.part_x, LoopKind::kVector, "threads"),
                   LoopOver("ic", std::min(t.tile_rc, w.ic), 1, LoopKind::kUnrolled),
                   LoopOver("oc", std::min(t.part_f, w.oc), 1, LoopKind::kUnrolled),
                   LoopOver("tile", std::min(t.part_x, s.tiles()), 1, LoopKind::kUnrolled)};
  // What the plain algorithm multiplies for each of these products.
  product.covers =
      9.0 * static_cast<double>(w.mb * w.oh * w.ow) / static_cast<double>(s.points() * s.tiles());
  LoopPart output = {"transform the output", {}, "Y = A^T M A", 0};
  output.loops = {LoopOver("tile", s.tiles(), 1, LoopKind::kTasks),
                  LoopOver("oc", w.oc, 1, LoopKind::kTasks, fmt::format("{0} x {0} outputs", m))};
  nest.parts = {std::move(input), std::move(product), std::move(output)};
  const double row = static_cast<double>(w.ic * kFloatBytes);
  nest.tile_input_bytes = row * static_cast<double>(t.part_x);
  nest.tile_weight_bytes = row * static_cast<double>(t.part_f);
  nest.tile_output_bytes = static_cast<double>(t.part_f * t.part_x * kFloatBytes);
  return nest;
}

}  // namespace tilesmith::cuda_winograd
