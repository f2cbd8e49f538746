// The loops in words.
#include <algorithm>

#include "templates/base/image_strides.h"
#include "templates/cuda_gather/schedule.h"

namespace tilesmith::cuda_gather {

LoopNest NestOf(const Schedule& s) {
  const ConvWorkload& w = s.workload;
  const GatherConfig& c = s.config;
  LoopNest nest;
  nest.tasks = {LoopOver("mb", w.mb, 1, LoopKind::kTasks), LoopOver("g", w.g, 1, LoopKind::kTasks),
                LoopOver("oc", s.filters(), c.tile_f, LoopKind::kTasks),
                LoopOver("oh", w.oh, c.tile_y, LoopKind::kTasks),
                LoopOver("ow", w.ow, c.tile_x, LoopKind::kTasks, "a tile is a thread's")};
  LoopPart part;
  part.loops = {LoopOver("ic", w.ic / w.g, 1, LoopKind::kLoop),
                LoopOver("kh", w.kh, 1, LoopKind::kUnrolled),
                LoopOver("kw", w.kw, 1, LoopKind::kUnrolled),
                LoopOver("oc", std::min(c.tile_f, s.filters()), 1, LoopKind::kUnrolled),
                LoopOver("oh", std::min(c.tile_y, w.oh), 1, LoopKind::kUnrolled),
                LoopOver("ow", std::min(c.tile_x, w.ow), 1, LoopKind::kUnrolled)};
  part.body = "sum += weight * input";
  nest.parts = {std::move(part)};
  const double terms = static_cast<double>(w.ic / w.g * w.kh * w.kw * kFloatBytes);
  nest.tile_input_bytes = terms * static_cast<double>(c.tile_y * c.tile_x);
  nest.tile_weight_bytes = terms * static_cast<double>(c.tile_f);
  nest.tile_output_bytes = static_cast<double>(c.tile_f * c.tile_y * c.tile_x * kFloatBytes);
  return nest;
}

}  // namespace tilesmith::cuda_gather
