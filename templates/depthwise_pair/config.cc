#include "templates/depthwise_pair/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "templates/base/conv_template.h"
#include "templates/base/image_strides.h"
#include "templates/base/row_tiles.h"
#include "templates/base/schedule_template.h"
#include "templates/depthwise/row_pairs.h"
#include "templates/direct/config.h"

namespace tilesmith {
namespace depthwise_pair {
namespace {

// The 1x1 conv of `pixels` neighbouring pixels as a conv of one row; block strides stay those of the tensors.
direct::Schedule PointwiseRow(const ConvWorkload& pointwise, const DepthwisePairConfig& config,
                              int64_t pixels, int vector_floats) {
  ConvWorkload row = pointwise;
  row.ih = row.oh = 1;
  row.iw = row.ow = pixels;
  direct::Schedule g = direct::MakeSchedule(row, config.pointwise, vector_floats);
  const int64_t block = std::min(g.in.BlockFor(row.ic), row.ic);
  g.passes = {{0, row.ic / block, block, row.ic % block}};
  return g;
}

}  // namespace

int64_t Schedule::scratch_floats() const {
  const int64_t width =
      kind == PairKind::kDepthwiseFirst ? depthwise.rows.workload.ow : depthwise.rows.workload.iw;
  return scratch_vectors * scratch_rows * width * depthwise.rows.vector_floats;
}

RowRange Schedule::MiddleRows(int64_t block) const {
  const ConvWorkload& w = depthwise.rows.workload;
  const int64_t first = block * config.rows;
  const int64_t last = std::min(w.oh, first + config.rows);
  if (kind == PairKind::kDepthwiseFirst) return {first, last};
  const int64_t top = std::clamp<int64_t>(first * w.sh - w.ph, 0, w.ih);
  const int64_t bottom =
      std::clamp<int64_t>((last - 1) * w.sh - w.ph + (w.kh - 1) * (w.dh + 1) + 1, top, w.ih);
  return {top, bottom};
}

RowRange Schedule::Chunks(int64_t part) const {
  const auto chunks = static_cast<int64_t>(pointwise.chunks.size());
  return {part * chunks / config.parts, (part + 1) * chunks / config.parts};
}

Schedule MakeSchedule(const ConvWorkload& workload, const DepthwisePairConfig& config, const Target& cpu) {
  const PairConvs convs = ConvsOf(workload);
  const int vector = cpu.vector_floats();
  Schedule g;
  g.kind = KindOf(workload);
  g.config = config;
  g.depthwise = depthwise::MakeSchedule(convs.depthwise, config.depthwise, cpu);
  if (g.kind == PairKind::kDepthwiseFirst) {
    g.scratch_rows = config.rows;
    g.scratch_vectors = g.depthwise.vectors;
    depthwise::WriteScratch(g.depthwise, g.scratch_rows);
    g.pointwise = PointwiseRow(convs.pointwise, config, config.rows * convs.pointwise.iw, vector);
    g.pointwise.out_block_bytes = convs.pointwise.oh * convs.pointwise.ow * g.pointwise.out_pixel_bytes;
    return g;
  }
  for (int64_t block = 0; block < g.row_blocks(); ++block)
    g.scratch_rows = std::max(g.scratch_rows, g.MiddleRows(block).size());
  depthwise::ReadScratch(g.depthwise, g.scratch_rows);
  g.pointwise = PointwiseRow(convs.pointwise, config, config.mid_rows * convs.pointwise.iw, vector);
  g.pointwise.in_block_bytes = convs.pointwise.ih * convs.pointwise.iw * g.pointwise.in_pixel_bytes;
  g.pointwise.out_block_bytes = g.depthwise.in.block_bytes;
  for (int64_t part = 0; part < config.parts; ++part) {
    int64_t vectors = 0;
    const RowRange chunks = g.Chunks(part);
    for (int64_t i = chunks.first; i < chunks.last; ++i) vectors += g.pointwise.chunks[i].vectors;
    g.scratch_vectors = std::max(g.scratch_vectors, vectors);
  }
  return g;
}

TaskGrid GridOf(const Schedule& g) {
  return {.images = g.depthwise.rows.workload.mb,
          .channels = g.config.parts,
          .rows = g.row_blocks(),
          .height = g.depthwise.rows.workload.oh,
          .part_units = g.config.rows};
}

LoopFeatures FeaturesOf(const Schedule& g) {
  const LoopFeatures depthwise = depthwise::FeaturesOf(g.depthwise);
  const ConvWorkload& w = g.depthwise.rows.workload;
  const bool depthwise_first = g.kind == PairKind::kDepthwiseFirst;
  const auto tasks = static_cast<double>(w.mb * g.config.parts * g.row_blocks());
  const auto parts = static_cast<double>(g.config.parts);
  LoopFeatures f = direct::FeaturesOf(g.pointwise);
  // Halo rows of the middle tensor, or all of it for every part, are computed more than once.
  int64_t middle_rows = 0;
  for (int64_t block = 0; block < g.row_blocks(); ++block) middle_rows += g.MiddleRows(block).size();
  const auto pointwise_rows = static_cast<double>(depthwise_first ? g.config.rows : g.config.mid_rows);
  f.flops = f.flops * static_cast<double>(middle_rows) / pointwise_rows +
            depthwise.flops * (depthwise_first ? parts : 1);
  f.code_bytes += depthwise.code_bytes;
  f.weight_bytes += depthwise.weight_bytes;
  f.tasks = tasks;
  f.task_weight_bytes = f.weight_bytes / parts;
  const double image_share = static_cast<double>(w.mb) / tasks;
  const auto block_bytes = [](int64_t bytes, int64_t blocks) { return static_cast<double>(bytes * blocks); };
  const int64_t in_blocks = (g.pointwise.workload.ic + g.pointwise.in.BlockFor(g.pointwise.workload.ic) - 1) /
                            g.pointwise.in.BlockFor(g.pointwise.workload.ic);
  f.task_input_bytes = depthwise_first
                           ? depthwise.task_input_bytes * static_cast<double>(g.depthwise.vectors)
                           : block_bytes(g.pointwise.in_block_bytes, in_blocks) * image_share * parts;
  const int64_t out_floats = w.oh * w.ow * (depthwise_first ? g.pointwise.workload.oc : w.oc);
  f.task_output_bytes = static_cast<double>(out_floats) * sizeof(float) * image_share;
  f.scratch_bytes = static_cast<double>(g.scratch_floats()) * sizeof(float);
  return f;
}

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

namespace {

constexpr std::string_view kDepthwisePrefix = "dw_";

bool IsDepthwisePart(const ConvWorkload& w) { return w.g == w.ic && w.g == w.oc; }
bool IsPointwise(const ConvWorkload& w) { return w.g == 1 && CanFlatten(w); }

// Rows of a task: divisors of the height when the 1x1 conv comes last, for it takes all rows of a task at
// once.
std::vector<int64_t> RowCounts(PairKind kind, int64_t height) {
  constexpr int64_t kMax = 56;
  std::vector<int64_t> rows;
  if (kind == PairKind::kPointwiseFirst) {
    rows = UpTo(height, {1, 2, 4, 7, 14, 28});
    if (height <= kMax && rows.back() != height) rows.push_back(height);
    return rows;
  }
  for (int64_t d = 1; d <= std::min(height, kMax); ++d) {
    if (height % d == 0) rows.push_back(d);
  }
  return rows;
}

// Blocks of the 1x1 conv's own tensor: input or output.
std::vector<int64_t> PointwiseBlocks(int64_t channels, int64_t vector) {
  std::vector<int64_t> blocks = BlocksOfVectors(channels, vector);
  blocks.push_back(0);
  return blocks;
}

std::string WhyPointwiseInvalid(const direct::Schedule& g, const Target& cpu) {
  const direct::DirectConfig& c = g.config;
  if (c.width_tile > g.ow)
    return fmt::format("width_tile {} exceeds the {} pixels there are", c.width_tile, g.ow);
  if (c.oc_vectors * cpu.vector_floats() >= g.workload.oc + cpu.vector_floats())
    return fmt::format("oc_vectors {} exceeds the output channels", c.oc_vectors);
  if (c.broadcast == direct::Broadcast::kMixed && c.oc_vectors == 1)
    return "mixed broadcast needs two weight vectors";
  const auto plan = direct::PlanRegisters(static_cast<int>(c.oc_vectors), static_cast<int>(c.width_tile),
                                          c.broadcast, cpu.vector_registers());
  if (!plan.fits)
    return fmt::format("register tile {} x {} does not fit {} registers", c.oc_vectors, c.width_tile,
                       cpu.vector_registers());
  if (c.ic_unroll > 1 && c.ic_unroll > std::min(g.in.BlockFor(g.workload.ic), g.workload.ic))
    return fmt::format("ic_unroll {} exceeds the block", c.ic_unroll);
  const int64_t code = direct::EstimateCodeBytes(g.workload, c, cpu.vector_floats());
  if (code > kMaxCodeBytes) return fmt::format("some {} bytes of code (at most {})", code, kMaxCodeBytes);
  return "";
}

std::string WhyInvalid(const ConvWorkload& w, const Target& cpu, const DepthwisePairConfig& c) {
  const PairConvs convs = ConvsOf(w);
  if (c.depthwise.row_tile > c.rows)
    return fmt::format("dw_row_tile {} exceeds the {} rows of a task", c.depthwise.row_tile, c.rows);
  if (std::string reason = depthwise::WhyTileInvalid(convs.depthwise, cpu, c.depthwise); !reason.empty())
    return reason;
  const Schedule g = MakeSchedule(w, c, cpu);
  const auto chunks = static_cast<int64_t>(g.pointwise.chunks.size());
  if (c.parts > chunks) return fmt::format("{} parts of {} chunks of channels", c.parts, chunks);
  for (int64_t block = 0; g.kind == PairKind::kPointwiseFirst && block < g.row_blocks(); ++block) {
    const int64_t rows = g.MiddleRows(block).size();
    if (rows > 0 && rows < c.mid_rows)
      return fmt::format("mid_rows {} exceeds the {} of a task", c.mid_rows, rows);
  }
  const int64_t scratch = g.scratch_floats() * kFloatBytes;
  if (scratch > cpu.l2_bytes && c.rows > 1)
    return fmt::format("{} KiB of scratch exceed the second-level cache's {}", scratch >> 10,
                       cpu.l2_bytes >> 10);
  if (std::string reason = WhyPointwiseInvalid(g.pointwise, cpu); !reason.empty()) return reason;
  return depthwise::WhyNotEmitted(g.depthwise.rows, g.depthwise.codes);
}

}  // namespace

PairKind KindOf(const ConvWorkload& w) {
  if (w.before.size() != 1) return PairKind::kNone;
  const ConvWorkload main = w.main_conv();
  if (IsDepthwisePart(w.before[0]) && IsPointwise(main)) return PairKind::kDepthwiseFirst;
  if (IsPointwise(w.before[0]) && IsDepthwisePart(main)) return PairKind::kPointwiseFirst;
  return PairKind::kNone;
}

PairConvs ConvsOf(const ConvWorkload& w) {
  if (KindOf(w) == PairKind::kDepthwiseFirst) return {w.before[0], w.main_conv()};
  return {w.main_conv(), w.before[0]};
}

DepthwisePairConfig ReadConfig(const ConvWorkload& w, const Target& cpu, const Config& config) {
  const bool depthwise_first = KindOf(w) == PairKind::kDepthwiseFirst;
  DepthwisePairConfig c;
  c.ic_block = config.Get("ic_block");
  c.oc_block = config.Get("oc_block");
  c.rows = config.Get("rows");
  c.parts = config.Get("parts");
  c.mid_rows = config.Get("mid_rows");
  c.depthwise = depthwise::ReadTile(config, kDepthwisePrefix);
  c.depthwise.rows = c.rows;
  c.depthwise.block = depthwise_first ? c.ic_block : c.oc_block;
  c.pointwise.ic_block = depthwise_first ? cpu.vector_floats() : c.ic_block;
  c.pointwise.oc_block = depthwise_first ? c.oc_block : cpu.vector_floats();
  c.pointwise.oc_vectors = config.Get("oc_vectors");
  c.pointwise.width_tile = config.Get("width_tile");
  c.pointwise.balance_tiles = true;
  c.pointwise.broadcast = static_cast<direct::Broadcast>(config.Get("broadcast"));
  c.pointwise.ic_unroll = config.Get("ic_unroll");
  return c;
}

namespace {

// Precondition here and below: a pair.
ConfigSpace Space(const ConvWorkload& w, const Target& cpu) {
  const PairKind kind = KindOf(w);
  const PairConvs convs = ConvsOf(w);
  const bool depthwise_first = kind == PairKind::kDepthwiseFirst;
  const int64_t vector = cpu.vector_floats();
  const std::vector<int64_t> depthwise_blocks = depthwise::DepthwiseBlocks(convs.depthwise, cpu);
  const int64_t chunks = (convs.pointwise.oc + vector - 1) / vector;
  std::vector<Knob> knobs = {
      {"ic_block", depthwise_first ? depthwise_blocks : PointwiseBlocks(w.before[0].ic, 8),
       "x of the input layout NCHW[x]c; 0 is NHWC"},
      {"oc_block", depthwise_first ? PointwiseBlocks(w.oc, vector) : depthwise_blocks,
       "x of the output layout NCHW[x]c; 0 is NHWC"},
      {"rows", RowCounts(kind, convs.depthwise.oh), "output rows of the depthwise conv per task"},
      {"parts", depthwise_first ? UpTo(chunks, {1, 2, 4}) : UpTo(chunks, {1, 2, 3, 4, 6, 8, 12, 16}),
       "parts of the 1x1 conv's output channels; a task computes one"},
      {"mid_rows", depthwise_first ? std::vector<int64_t>{1} : UpTo(convs.depthwise.ih, {1, 2, 4, 7}),
       "1x1 first: its rows computed together"},
      {"oc_vectors", UpTo(8, {1, 2, 3, 4, 6}), "1x1's register tile: vectors of output channels"},
      {"width_tile", UpTo(cpu.vector_registers() - 2, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 28}),
       "1x1's register tile: output positions"},
      {"broadcast", {1, 2}, "1x1's input element: 1 in a register, 2 and last weights from memory"},
      {"ic_unroll", UpTo(std::max<int64_t>(convs.pointwise.ic, 1), {1, 2, 4, 8}),
       "1x1's input channels unrolled"},
  };
  for (Knob& knob : depthwise::TileKnobs(convs.depthwise, cpu, kDepthwisePrefix)) {
    knob.help = "depthwise " + knob.help;
    knobs.push_back(std::move(knob));
  }
  return ConfigSpace(std::move(knobs), [w, cpu](const Config& config) {
    return WhyInvalid(w, cpu, ReadConfig(w, cpu, config));
  });
}

// A config without tuning. Invalid only when the depthwise kernel is too large for every config.
Config Default(const ConvWorkload& w, const Target& cpu) {
  const ConfigSpace space = Space(w, cpu);
  const PairConvs convs = ConvsOf(w);
  Config config;
  for (const Knob& knob : space.knobs()) config.Set(knob.name, knob.values.front());
  // The last valid one along each knob's `wanted` values.
  const auto grow = [&](std::string_view knob, std::initializer_list<int64_t> wanted) {
    for (const int64_t value : wanted) {
      Config next = config;
      next.Set(knob, value);
      if (space.WhyInvalid(next).empty()) config = next;
    }
  };
  for (const depthwise::DepthwiseConfig& tile : depthwise::DefaultTiles(convs.depthwise, cpu)) {
    depthwise::SetTile(tile, kDepthwisePrefix, config);
    if (space.WhyInvalid(config).empty()) break;
  }
  grow("ic_block", {cpu.vector_floats()});
  grow("oc_block", {cpu.vector_floats()});
  grow("ic_unroll", {2, 4});
  grow("rows", {2, 4});
  grow("oc_vectors", {2});
  grow("width_tile", {2, 3, 4, 5, 6, 7, 10, 14});
  return config;
}

Support Supports(const ConvWorkload& w, const Target&) {
  if (KindOf(w) == PairKind::kNone) return Support::No("not a depthwise conv and a 1x1 conv of stride 1");
  return FitsDisplacements(w);
}

double ErrorFactor(const ConvWorkload&, const Config& config) {
  return config.Get("dw_pairs") != 0 ? depthwise::kPairErrorFactor : 1;
}

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return MakeSchedule(w, ReadConfig(w, cpu, config), cpu);
}

}  // namespace
}  // namespace depthwise_pair

const ConvTemplate& DepthwisePairTemplate() {
  static const GeneratedTemplate<depthwise_pair::Schedule> instance(
      {.name = "depthwise_pair",
       .fuses = true,
       .supports = depthwise_pair::Supports,
       .preset_decides = true,
       .space = depthwise_pair::Space,
       .preset = depthwise_pair::Default,
       .read = depthwise_pair::ReadSchedule,
       .shifts_blocks = true,
       .error_factor = depthwise_pair::ErrorFactor});
  return instance;
}

}  // namespace tilesmith
