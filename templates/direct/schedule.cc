#include "templates/direct/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "layouts/base/sizes.h"
#include "templates/base/conv_template.h"
#include "templates/base/image_strides.h"
#include "templates/base/loop_features.h"

namespace tilesmith::direct {
namespace {

// A pass never splits a block; in NHWC, and when a group lies inside a block, the pass is one block itself.
// What is left of a last block is a pass of its own, but part of the only one with factors of bf16, where
// sums cannot be kept in the output, and where passes are summed apart, which then are the same in all
// layouts.
std::vector<Pass> CutChannels(int64_t channels, int64_t block, const DirectConfig& config) {
  std::vector<Pass> passes;
  int64_t per_pass = config.ic_pass;
  if (per_pass == 0 || per_pass > channels) per_pass = channels;
  const bool only_one = per_pass == channels && (config.factors == Factors::kBf16 ||
                                                 config.out_type != DataType::kF32 || config.sums_passes);
  const bool one_block = block >= channels;
  if (!one_block && !only_one) per_pass = std::max(block, per_pass / block * block);
  for (int64_t c = 0; c < channels; c += per_pass) {
    const int64_t count = std::min(per_pass, channels - c);
    Pass pass;
    pass.first_channel = c;
    pass.block_channels = one_block ? count : block;
    pass.blocks = count / pass.block_channels;
    pass.tail_channels = count % pass.block_channels;
    passes.push_back(pass);
  }
  return passes;
}

std::vector<Chunk> CutOutputChannels(const ConvWorkload& w, const Layout& out, int most_vectors, int floats) {
  std::vector<Chunk> chunks;
  const int64_t per_group = w.oc / w.g;
  const int64_t vectors = CeilDiv(per_group, floats);
  const int64_t count = CeilDiv(vectors, most_vectors);
  for (int64_t g = 0; g < w.g; ++g) {
    int64_t v = 0;
    for (int64_t i = 0; i < count; ++i) {
      Chunk chunk;
      chunk.group = g;
      chunk.first_channel = g * per_group + v * floats;
      chunk.vectors = static_cast<int>(vectors / count + (i < vectors % count));
      v += chunk.vectors;
      if (v == vectors) chunk.partial_lanes = static_cast<int>(per_group % floats);
      chunks.push_back(chunk);
    }
  }
  const int64_t written = CeilDiv(w.oc, floats) * floats;
  if (!out.is_nhwc())
    chunks.back().zero_vectors = static_cast<int>((out.PaddedChannels(w.oc) - written) / floats);
  return chunks;
}

// The cycles of one step of input channels and kernel column in a register tile.
double TapCycles(int64_t vectors, int64_t positions, Factors factors) {
  const auto v = static_cast<double>(vectors), p = static_cast<double>(positions);
  const double latency = factors == Factors::kBf16 ? kBf16DotLatency : kFmaLatency;
  return std::max({v * p / kFmasPerCycle, (v + p) / kLoadsPerCycle, v / kL2VectorsPerCycle, latency});
}

}  // namespace

double RowCycles(const ConvWorkload& w, const DirectConfig& c, int vector_floats) {
  const RowCut cut = c.flat_width > 0 ? RowCut{c.flat_width, c.flat_width, c.width_tile, c.balance_tiles}
                                      : RowCut{w.iw, w.ow, c.width_tile, c.balance_tiles};
  const int64_t channels = w.ic / w.g;
  const int64_t vectors = CeilDiv(w.oc / w.g, vector_floats), chunks = CeilDiv(vectors, c.oc_vectors);
  const int64_t fewer = vectors / chunks, larger_chunks = vectors % chunks;
  const double taps = static_cast<double>(c.Steps(channels)) * static_cast<double>(w.kh * w.kw);
  const auto passes = static_cast<double>(c.ic_pass == 0 ? 1 : CeilDiv(channels, c.ic_pass));
  double cycles = 0;
  ForEachRun(w, cut, [&](const TileRun& run) {
    const auto tile_cycles = [&](int64_t v) {
      constexpr double kStart = 12;  // beside setting the sums and storing them
      return taps * TapCycles(v, run.width, c.factors) +
             passes * (static_cast<double>(v * run.width) + kStart);
    };
    const double all_chunks = static_cast<double>(chunks - larger_chunks) * tile_cycles(fewer) +
                              static_cast<double>(larger_chunks) * tile_cycles(fewer + 1);
    cycles += static_cast<double>(run.count * w.g) * all_chunks;
  });
  return cycles;
}

// Its tasks' arithmetic, and what they read from beyond the second-level cache. Neighbouring tasks share the
// input or the weights, and meet the other again if all of it has stayed.
double BusiestCoreCycles(const ConvWorkload& w, const DirectConfig& c, double row_cycles, const Target& cpu) {
  const int64_t height = c.flat_width > 0 ? w.ih * w.iw / c.flat_width : w.oh;
  const auto width = static_cast<double>(c.flat_width > 0 ? c.flat_width : w.iw);
  const int64_t vectors = CeilDiv(w.oc / w.g, cpu.vector_floats());
  const auto chunks = static_cast<double>(w.g * CeilDiv(vectors, c.oc_vectors));
  const auto blocks = static_cast<double>(w.mb * CeilDiv(height, c.rows));
  const auto channels = static_cast<double>(w.ic / w.g), rows = static_cast<double>(c.rows);
  const double passes = c.ic_pass == 0 ? 1 : std::ceil(channels / static_cast<double>(c.ic_pass));
  const auto chunk = static_cast<double>(c.oc_vectors * cpu.vector_floats());
  const auto in_bytes = static_cast<double>(c.in_bytes()), out_bytes = static_cast<double>(c.out_bytes());
  const double input = static_cast<double>(InputRowsOfTask(w, c)) * width * channels * in_bytes;
  const double weights =
      chunk * static_cast<double>(c.weight_bytes()) * channels * static_cast<double>(w.kh * w.kw);
  const double output = rows * width / static_cast<double>(w.sw) * chunk * out_bytes;
  const double shared = c.oc_inner ? input : weights, other = c.oc_inner ? weights : input;
  const double neighbours = c.oc_inner ? chunks : blocks;
  const double tasks = std::ceil(chunks * blocks / cpu.cores);
  const auto fits = [&](double bytes) { return bytes <= static_cast<double>(cpu.l2_bytes) / 2; };
  const double shared_reads =
      fits((input + weights) / passes + output) ? std::ceil(tasks / neighbours) : tasks;
  const double other_reads = fits(other * neighbours) ? std::min(tasks, neighbours) : tasks;
  return tasks * rows * row_cycles / chunks +
         (shared * shared_reads + other * other_reads) / kL3BytesPerCycle +
         weights * chunks / kMemoryBytesPerCycle;
}

double CyclesOf(const Schedule& g, const Target& cpu) {
  return BusiestCoreCycles(g.workload, g.config, RowCycles(g.workload, g.config, g.vector_floats), cpu);
}

Schedule MakeSchedule(const ConvWorkload& w, const DirectConfig& config, int vector_floats) {
  Schedule g;
  g.workload = w;
  g.config = config;
  g.in = LayoutOfBlockKnob(config.ic_block).WithType(config.in_type);
  g.out = LayoutOfBlockKnob(config.oc_block).WithType(config.out_type);
  g.vector_floats = vector_floats;
  const bool flat = config.flat_width > 0;
  g.iw = flat ? config.flat_width : w.iw;
  g.ih = flat ? w.ih * w.iw / config.flat_width : w.ih;
  g.ow = flat ? g.iw : w.ow;
  g.oh = flat ? g.ih : w.oh;
  g.in_pixel_bytes = g.in.BlockFor(w.ic) * config.in_bytes();
  g.in_row_bytes = g.iw * g.in_pixel_bytes;
  g.in_block_bytes = g.ih * g.in_row_bytes;
  g.out_pixel_bytes = g.out.BlockFor(w.oc) * config.out_bytes();
  g.out_row_bytes = g.ow * g.out_pixel_bytes;
  g.out_block_bytes = g.oh * g.out_row_bytes;
  g.tiles = CutRow(w, {g.iw, g.ow, config.width_tile, config.balance_tiles});
  g.passes = CutChannels(w.ic / w.g, g.in.BlockFor(w.ic), config);
  g.chunks = CutOutputChannels(w, g.out, static_cast<int>(config.oc_vectors), vector_floats);
  return g;
}

int64_t Schedule::OutChannelOffset(int64_t channel) const {
  const int64_t block = out.BlockFor(workload.oc);
  return channel / block * out_block_bytes + channel % block * config.out_bytes();
}

bool Schedule::prepares() const { return Prepares(workload, config); }

void Schedule::KernelRows(int64_t row, int64_t* first, int64_t* last) const {
  const int64_t top = row * workload.sh - workload.ph;
  const int64_t step = workload.dh + 1;
  *first = top < 0 ? CeilDiv(-top, step) : 0;
  *last = std::clamp<int64_t>(top >= ih ? 0 : CeilDiv(ih - top, step), 0, workload.kh);
  *first = std::min(*first, *last);
}

int64_t InputRowsOfTask(const ConvWorkload& w, const DirectConfig& config) {
  const int64_t height = config.flat_width > 0 ? w.ih * w.iw / config.flat_width : w.ih;
  return std::min(height, (config.rows - 1) * w.sh + (w.kh - 1) * (w.dh + 1) + 1);
}

bool Prepares(const ConvWorkload& w, const DirectConfig& config) {
  return w.pre.any() || config.in_type != config.factor_type();
}

int64_t PreparedBytes(const ConvWorkload& w, const DirectConfig& config) {
  const int64_t width = config.flat_width > 0 ? config.flat_width : w.iw;
  const int64_t channels = LayoutOfBlockKnob(config.ic_block).PaddedChannels(w.ic);
  return InputRowsOfTask(w, config) * width * channels * config.in_bytes();
}

TaskGrid GridOf(const Schedule& g) {
  const bool flat = g.config.flat_width > 0;
  return {.images = g.workload.mb,
          .channels = static_cast<int64_t>(g.chunks.size()),
          .rows = g.row_blocks(),
          .channels_inner = g.config.oc_inner,
          .height = g.workload.oh,
          .row_units = flat ? g.workload.ow : 1,
          .part_units = flat ? g.config.rows * g.config.flat_width : g.config.rows};
}

LoopFeatures FeaturesOf(const Schedule& g) {
  const ConvWorkload& w = g.workload;
  const DirectConfig& c = g.config;
  const auto in_bytes = static_cast<double>(c.in_bytes()), out_bytes = static_cast<double>(c.out_bytes());
  const auto weight_bytes = static_cast<double>(c.weight_bytes());
  const double input_share = in_bytes / static_cast<double>(kFloatBytes);
  const int64_t taps = w.ic / w.g * w.kh * w.kw;
  int64_t vectors = 0;
  for (const Chunk& chunk : g.chunks) vectors += chunk.vectors;
  const double chunk_lanes = static_cast<double>(c.oc_vectors * g.vector_floats);
  const auto tile = static_cast<double>(c.oc_vectors * c.width_tile);
  double loads = static_cast<double>(c.oc_vectors + c.width_tile);
  if (c.broadcast == Broadcast::kEmbedded) loads = static_cast<double>(c.oc_vectors) + tile;
  if (c.broadcast == Broadcast::kMixed) loads += static_cast<double>(c.width_tile - 1);
  LoopFeatures f;
  f.flops =
      2.0 * static_cast<double>(w.mb * g.oh * g.ow) * static_cast<double>(vectors * g.vector_floats * taps);
  f.fma_per_load = tile / loads;
  f.accumulators = tile;
  f.code_bytes = static_cast<double>(EstimateCodeBytes(w, c, g.vector_floats));
  f.weight_bytes = static_cast<double>(vectors * g.vector_floats * taps) * weight_bytes;
  f.tasks = static_cast<double>(w.mb * static_cast<int64_t>(g.chunks.size()) * g.row_blocks());
  f.task_input_bytes = c.flat_width > 0 ? static_cast<double>(c.rows * g.iw * w.ic) * in_bytes
                                        : InputBytes(w, c.rows, w.ic / w.g) * input_share;
  f.task_weight_bytes = chunk_lanes * static_cast<double>(taps) * weight_bytes;
  f.task_output_bytes = chunk_lanes * static_cast<double>(c.rows * g.ow) * out_bytes;
  f.output_passes = static_cast<double>(g.passes.size());
  if (g.prepares()) f.scratch_bytes = static_cast<double>(PreparedBytes(w, c));
  return f;
}

int64_t EstimateCodeBytes(const ConvWorkload& w, const DirectConfig& config, int vector_floats) {
  const int64_t iw = config.flat_width > 0 ? config.flat_width : w.iw;
  const int64_t ow = config.flat_width > 0 ? config.flat_width : w.ow;
  const int64_t block = config.ic_block == 0 ? w.ic / w.g : std::min(config.ic_block, w.ic / w.g);
  const int64_t in_block = config.Steps(block);
  const int64_t unroll = std::min(config.ic_unroll, in_block);
  // Unrolled copies of the channel body: the loop, its rest, and both again for a partial last block.
  const int64_t tail = config.Steps(w.ic / w.g % block);
  const int64_t channels = unroll + in_block % unroll + std::min(tail, unroll) + tail % unroll;
  const int64_t fma_bytes = vector_floats == 16 ? 7 : 6;
  const int64_t load_bytes = 8, widening_bytes = config.weight_type == DataType::kF32 ? 0 : 5;
  int64_t bytes = 0;
  ForEachRun(w, {iw, ow, config.width_tile, config.balance_tiles}, [&](const TileRun& run) {
    const int64_t body = run.width * (config.oc_vectors * fma_bytes + load_bytes) +
                         config.oc_vectors * (load_bytes + widening_bytes);
    bytes += body * channels * w.kw + run.width * config.oc_vectors * 32;
  });
  return bytes;
}

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
                             LoopOver("ic", block, unroll, LoopKind::kLoop),
                             LoopOver("ic", unroll, step, LoopKind::kUnrolled),
                             LoopOver("kh", g.workload.kh, 1, LoopKind::kLoop, "those inside the input"),
                             LoopOver("kw", g.workload.kw, 1, LoopKind::kUnrolled),
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
