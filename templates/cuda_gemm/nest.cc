// The loops of a product in words.
#include <algorithm>

#include "templates/cuda_gemm/schedule.h"

namespace tilesmith::cuda_gemm {

LoopNest NestOf(const Product& p) {
  const Tile& t = p.tile;
  const bool ffma = t.tensor == Tensor::kNone;
  LoopNest nest;
  nest.tasks = {LoopOver("g", p.units(), 1, LoopKind::kTasks),
                LoopOver("oc", p.filters(), t.tile_f, LoopKind::kTasks),
                LoopOver("mb x oh x ow", p.positions(), t.tile_x, LoopKind::kTasks),
                LoopOver("kh x kw x ic", p.depth(), CeilDiv(p.steps(), t.split_k) * t.tile_rc,
                         LoopKind::kTasks, "blocks that share a sum")};
  const int64_t depth = std::min(p.depth(), CeilDiv(p.steps(), t.split_k) * t.tile_rc);
  LoopPart part;
  part.loops = {
      LoopOver("kh x kw x ic", depth, t.tile_rc, LoopKind::kLoop,
               fmt::format("a tile in shared memory, {} copied ahead", t.stages - 1)),
      LoopOver("oc", std::min(t.tile_f, p.filters()), t.part_f, LoopKind::kVector,
               ffma ? "threads" : "warps"),
      LoopOver("mb x oh x ow", std::min(t.tile_x, p.positions()), t.part_x, LoopKind::kVector,
               ffma ? "threads" : "warps"),
      LoopOver("kh x kw x ic", std::min(t.tile_rc, depth), 1, LoopKind::kUnrolled),
      LoopOver("oc", std::min(t.part_f, p.filters()), 1, ffma ? LoopKind::kUnrolled : LoopKind::kVector),
      LoopOver("mb x oh x ow", std::min(t.part_x, p.positions()), 1,
               ffma ? LoopKind::kUnrolled : LoopKind::kVector)};
  part.body = ffma ? "sum += weight * input" : "sum += weight * input, by tensor cores";
  nest.parts = {std::move(part)};
  const double row = static_cast<double>(depth * kFloatBytes);
  nest.tile_input_bytes = row * static_cast<double>(t.part_x);
  nest.tile_weight_bytes = row * static_cast<double>(t.part_f);
  nest.tile_output_bytes = static_cast<double>(t.part_f * t.part_x * kFloatBytes);
  return nest;
}

}  // namespace tilesmith::cuda_gemm
