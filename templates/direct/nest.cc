// The direct template's loops in words.
#include <fmt/format.h>

#include <algorithm>

#include "templates/direct/schedule.h"

namespace tilesmith::direct {
namespace {

// Widest of the tiles that a row is cut into.
int64_t WidestTile(const Schedule& g) {
  const int64_t width = g.config.width_tile, tiles = (g.ow + width - 1) / width;
  return g.config.balance_tiles ? (g.ow + tiles - 1) / tiles : std::min(width, g.ow);
}

int64_t WidestChunk(const Schedule& g) {
  int64_t vectors = 1;
  for (const Chunk& chunk : g.chunks) vectors = std::max<int64_t>(vectors, chunk.vectors);
  return vectors;
}

const char* BroadcastText(Broadcast broadcast) {
  switch (broadcast) {
    case Broadcast::kEmbedded:
      return "sum += weights * input, broadcast from memory by each FMA";
    case Broadcast::kRegister:
      return "sum += weights * input, broadcast into a register";
    case Broadcast::kMixed:
      return "sum += weights * input, broadcast into a register; the last weights from memory";
  }
  return "";
}

}  // namespace

Loop PassLoop(const Schedule& g) {
  return LoopOver("ic", g.workload.ic / g.workload.g, g.passes.front().channels(), LoopKind::kLoop,
                  "passes, with the sums stored in the output in between");
}

std::vector<Loop> RowLoops(const Schedule& g, std::string_view pixels) {
  const DirectConfig& c = g.config;
  const Pass& pass = g.passes.front();
  const int64_t block = pass.blocks > 0 ? pass.block_channels : pass.tail_channels;
  const int64_t step = c.step_channels(), unroll = std::min(c.ic_unroll * step, block), width = WidestTile(g);
  std::vector<Loop> loops = {LoopOver(pixels, g.ow, width, LoopKind::kLoop, "register tiles"),
                             LoopOver("ic", pass.channels(), block, LoopKind::kLoop, "blocks of the layout"),
                             LoopOver("kh", g.workload.kh, 1, LoopKind::kLoop, "those inside the input"),
                             LoopOver("ic", block, unroll, LoopKind::kLoop),
                             LoopOver("kw", g.workload.kw, 1, LoopKind::kUnrolled),
                             LoopOver("ic", unroll, step, LoopKind::kUnrolled),
                             LoopOver(pixels, width, 1, LoopKind::kUnrolled, "register tile: positions"),
                             LoopOver("oc", WidestChunk(g) * g.vector_floats, g.vector_floats,
                                      LoopKind::kUnrolled, "register tile: vectors of channels"),
                             LoopOver("oc", g.vector_floats, 1, LoopKind::kVector)};
  if (c.prefetch > 0) loops[5].note = fmt::format("weights fetched {} vectors ahead", c.prefetch);
  return loops;
}

std::string RowBody(const Schedule& g) { return BroadcastText(g.config.broadcast); }

void SetTileBytes(const Schedule& g, LoopNest& nest) {
  const ConvWorkload& w = g.workload;
  const int64_t width = WidestTile(g), lanes = WidestChunk(g) * g.vector_floats;
  const int64_t channels = g.passes.front().channels();
  const int64_t columns = std::min(g.iw, (width - 1) * w.sw + (w.kw - 1) * (w.dw + 1) + 1);
  const auto in_bytes = static_cast<double>(g.config.in_bytes());
  nest.tile_input_bytes = static_cast<double>(columns * w.kh * channels) * in_bytes;
  nest.tile_weight_bytes =
      static_cast<double>(lanes * w.kh * w.kw * channels) * static_cast<double>(g.config.weight_bytes());
  nest.tile_output_bytes = static_cast<double>(lanes * width) * static_cast<double>(g.config.out_bytes());
}

LoopNest NestOf(const Schedule& g) {
  const ConvWorkload& w = g.workload;
  const DirectConfig& c = g.config;
  const Loop rows = LoopOver("oh", g.oh, c.rows, LoopKind::kTasks, "output rows of a task");
  const Loop groups = LoopOver("g", w.g, 1, LoopKind::kTasks);
  const Loop chunks = LoopOver("oc", w.oc / w.g, WidestChunk(g) * g.vector_floats, LoopKind::kTasks,
                               "chunks of channels, with weights of their own");
  LoopNest nest;
  nest.tasks = {LoopOver("mb", w.mb, 1, LoopKind::kTasks)};
  if (c.oc_inner) {
    nest.tasks.insert(nest.tasks.end(), {rows, groups, chunks});
  } else {
    nest.tasks.insert(nest.tasks.end(), {groups, chunks, rows});
  }
  if (c.flat_width > 0) nest.tasks.front().note = fmt::format("images recut into {} rows of {}", g.oh, g.ow);
  if (g.prepares()) {
    LoopPart prepare = {"prepare the input rows of the task, once for all its chunks", {}, "", 0};
    prepare.loops = {LoopOver("ih", InputRowsOfTask(w, c), 1, LoopKind::kLoop),
                     LoopOver("iw", g.iw, 1, LoopKind::kLoop)};
    prepare.body = w.pre.any()
                       ? "row in scratch = scale, shift, activation of the input"
                       : fmt::format("row in scratch = the input as {}", DataTypeName(c.factor_type()));
    nest.parts.push_back(std::move(prepare));
  }
  LoopPart multiply;
  if (g.prepares()) multiply.title = "multiply";
  multiply.loops = {PassLoop(g), LoopOver("oh", c.rows, 1, LoopKind::kLoop)};
  const std::vector<Loop> row = RowLoops(g, "ow");
  multiply.loops.insert(multiply.loops.end(), row.begin(), row.end());
  multiply.body = RowBody(g);
  nest.parts.push_back(std::move(multiply));
  SetTileBytes(g, nest);
  return nest;
}

}  // namespace tilesmith::direct
