// The Winograd template's loops in words.
#include <fmt/format.h>

#include <algorithm>

#include "templates/winograd/schedule.h"

namespace tilesmith::winograd {
namespace {

// A stage of its own: the loop over vectors of channels and the one over rows of tiles are tasks.
LoopPart TransformStage(const Schedule& g, LoopPart part, std::string_view channels, int64_t vectors) {
  part.loops = {LoopOver(channels, vectors * g.vector_floats, g.vector_floats, LoopKind::kTasks),
                LoopOver("tiles", g.tiles, g.columns, LoopKind::kTasks, "rows of tiles"),
                LoopOver("tiles", g.columns, 1, LoopKind::kLoop),
                LoopOver(channels, g.vector_floats, 1, LoopKind::kVector)};
  return part;
}

// Inside a task that takes a block of tiles through all parts.
LoopPart TransformBlock(const Schedule& g, LoopPart part, std::string_view channels, int64_t vectors) {
  part.loops = {LoopOver(channels, vectors * g.vector_floats, g.vector_floats, LoopKind::kLoop),
                LoopOver("tiles", g.block_tiles, 1, LoopKind::kLoop),
                LoopOver(channels, g.vector_floats, 1, LoopKind::kVector)};
  return part;
}

LoopPart Products(const Schedule& g, const direct::Schedule& product) {
  const Partition partition = g.config.partition;
  LoopPart part;
  part.title = "multiply: one matrix product for each element xi of the windows";
  int64_t widest = 1;
  for (const direct::Chunk& chunk : product.chunks) widest = std::max<int64_t>(widest, chunk.vectors);
  const auto xi = [&](LoopKind kind) { return LoopOver("xi", g.elements(), 1, kind); };
  const auto chunks = [&](LoopKind kind) {
    return LoopOver("oc", product.workload.oc, widest * g.vector_floats, kind, "chunks of channels");
  };
  switch (partition) {
    case Partition::kTileBlocks:
      part.loops = {xi(LoopKind::kLoop), chunks(LoopKind::kLoop)};
      break;
    case Partition::kElements:
      part.loops = {xi(LoopKind::kTasks), chunks(LoopKind::kTasks)};
      break;
    case Partition::kOutChannels:
      part.loops = {chunks(LoopKind::kTasks), xi(LoopKind::kLoop)};
      break;
  }
  part.loops.push_back(direct::PassLoop(product));
  const std::vector<Loop> row = direct::RowLoops(product, "tiles");
  part.loops.insert(part.loops.end(), row.begin(), row.end());
  part.body = direct::RowBody(product);
  part.covers = static_cast<double>(g.config.tile * g.config.tile * g.workload.kh * g.workload.kw) /
                static_cast<double>(g.elements());
  return part;
}

}  // namespace

LoopNest NestOf(const Schedule& g) {
  const direct::Schedule product = direct::MakeSchedule(ProductOf(g.workload, g.block_tiles, g.vector_floats),
                                                        g.config.product, g.vector_floats);
  const std::string window = fmt::format("{0}x{0}", g.window()), tile = fmt::format("{0}x{0}", g.config.tile);
  LoopPart in, out;
  in.title = fmt::format("transform the input: windows of {}, a tile of {} outputs each", window, tile);
  in.body = fmt::format("V[xi] = {} elements of the transformed window", g.elements());
  in.covers = out.covers = 0;
  out.title = "transform back";
  out.body =
      fmt::format("{} outputs = transformed sums{}", tile, g.config.stream ? ", stored past the caches" : "");
  LoopNest nest;
  if (g.config.partition == Partition::kTileBlocks) {
    nest.tasks = {LoopOver("tiles", g.tiles, g.block_tiles, LoopKind::kTasks,
                           fmt::format("blocks of {} {} tiles in scratch", g.block_tiles, tile))};
    nest.parts = {TransformBlock(g, std::move(in), "ic", g.in_vectors), Products(g, product),
                  TransformBlock(g, std::move(out), "oc", g.out_vectors)};
  } else {
    nest.parts = {TransformStage(g, std::move(in), "ic", g.in_vectors), Products(g, product),
                  TransformStage(g, std::move(out), "oc", g.out_vectors)};
  }
  direct::SetTileBytes(product, nest);
  return nest;
}

}  // namespace tilesmith::winograd
