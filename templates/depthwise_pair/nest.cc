// The depthwise_pair template's loops in words.
#include <fmt/format.h>

#include <algorithm>

#include "templates/depthwise_pair/schedule.h"

namespace tilesmith::depthwise_pair {
namespace {

// Chunks of the 1x1 conv's output channels that one task computes, at most, and the vectors of the largest.
struct PartSize {
  int64_t chunks = 1, vectors = 1, chunk_vectors = 1;
};

PartSize LargestPart(const Schedule& g) {
  PartSize size;
  for (int64_t part = 0; part < g.config.parts; ++part) {
    const RowRange chunks = g.Chunks(part);
    int64_t vectors = 0;
    for (int64_t i = chunks.first; i < chunks.last; ++i) {
      vectors += g.pointwise.chunks[i].vectors;
      size.chunk_vectors = std::max<int64_t>(size.chunk_vectors, g.pointwise.chunks[i].vectors);
    }
    size.chunks = std::max(size.chunks, chunks.size());
    size.vectors = std::max(size.vectors, vectors);
  }
  return size;
}

}  // namespace

LoopNest NestOf(const Schedule& g) {
  const ConvWorkload& depthwise = g.depthwise.rows.workload;
  const bool depthwise_first = g.kind == PairKind::kDepthwiseFirst;
  const int64_t lanes = g.pointwise.vector_floats;
  const PartSize size = LargestPart(g);
  const int64_t chunk = size.chunk_vectors * lanes;
  LoopNest nest;
  nest.tasks = {LoopOver("mb", depthwise.mb, 1, LoopKind::kTasks),
                {"oc", g.config.parts, size.chunks * chunk, LoopKind::kTasks, "of the 1x1 conv"},
                LoopOver("oh", depthwise.oh, g.config.rows, LoopKind::kTasks, "output rows of a task")};
  LoopPart planes = depthwise::PlaneLoops(g.depthwise, depthwise_first ? g.depthwise.vectors : size.vectors);
  planes.title = depthwise_first ? "depthwise, into scratch" : "depthwise, from scratch";
  LoopPart rows;
  rows.title = depthwise_first ? "1x1, from scratch" : "1x1, into scratch";
  rows.loops = {LoopOver("oc", size.chunks * chunk, chunk, LoopKind::kLoop, "chunks of channels")};
  if (!depthwise_first) {
    const int64_t calls = (g.scratch_rows + g.config.mid_rows - 1) / g.config.mid_rows;
    rows.loops.push_back({"rows between", calls, 1, LoopKind::kLoop,
                          fmt::format("{} rows at once, those of the halo too", g.config.mid_rows)});
  }
  const std::vector<Loop> row = direct::RowLoops(g.pointwise, "pixels");
  rows.loops.insert(rows.loops.end(), row.begin(), row.end());
  rows.body = direct::RowBody(g.pointwise);
  if (depthwise_first) {
    nest.parts = {std::move(planes), std::move(rows)};
  } else {
    nest.parts = {std::move(rows), std::move(planes)};
  }
  direct::SetTileBytes(g.pointwise, nest);
  return nest;
}

}  // namespace tilesmith::depthwise_pair
