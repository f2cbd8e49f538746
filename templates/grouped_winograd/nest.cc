// The grouped Winograd template's loops in words.
#include <fmt/format.h>

#include <algorithm>

#include "templates/grouped_winograd/schedule.h"

namespace tilesmith::grouped_winograd {

LoopNest NestOf(const Schedule& g) {
  const GroupedWinogradConfig& c = g.grouped;
  const ConvWorkload& w = g.workload;
  const int64_t lanes = g.vector_floats, channels = w.ic / w.g;
  const int64_t width = std::min(c.width_tile, g.block_tiles);
  LoopNest nest;
  nest.tasks = {LoopOver("c", g.out_vectors * lanes, lanes, LoopKind::kTasks, "several groups a vector"),
                LoopOver("tiles", g.tiles, g.block_tiles, LoopKind::kTasks,
                         fmt::format("blocks of {0} {1}x{1} tiles in scratch", g.block_tiles, c.tile))};
  const auto transform = [&](std::string title, std::string body) {
    LoopPart part = {std::move(title), {}, std::move(body), 0};
    part.loops = {LoopOver("tiles", g.block_tiles, 1, LoopKind::kLoop),
                  LoopOver("c", lanes, 1, LoopKind::kVector)};
    return part;
  };
  LoopPart products = {"multiply: groups in lane, for each element xi of the windows", {}, "", 1};
  products.loops = {LoopOver("xi", g.elements(), 1, LoopKind::kLoop),
                    LoopOver("tiles", g.block_tiles, width, LoopKind::kUnrolled),
                    LoopOver("ic", channels, 1, LoopKind::kUnrolled, "of the group"),
                    LoopOver("tiles", width, 1, LoopKind::kUnrolled, "register tile"),
                    LoopOver("c", lanes, 1, LoopKind::kVector)};
  products.body = "sum += weights * input, permuted within its groups";
  products.covers = static_cast<double>(c.tile * c.tile * w.kh * w.kw) / static_cast<double>(g.elements());
  nest.parts = {transform(fmt::format("transform the input: windows of {0}x{0}", g.window()),
                          "V[xi] = elements of the transformed window"),
                std::move(products),
                transform("transform back", fmt::format("{0}x{0} outputs = transformed sums", c.tile))};
  const auto vector_bytes = static_cast<double>(lanes) * sizeof(float);
  nest.tile_input_bytes = nest.tile_output_bytes = static_cast<double>(width) * vector_bytes;
  nest.tile_weight_bytes = static_cast<double>(channels) * vector_bytes;
  return nest;
}

}  // namespace tilesmith::grouped_winograd
