#include "templates/depthwise_pair/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "templates/base/image_strides.h"
#include "templates/base/row_tiles.h"
#include "templates/base/support_checks.h"
#include "templates/depthwise_pair/schedule.h"
#include "templates/direct/register_plan.h"

namespace tilesmith::depthwise_pair {
namespace {

constexpr std::string_view kDepthwisePrefix = "dw_";

bool IsDepthwise(const ConvWorkload& w) { return w.g == w.ic && w.g == w.oc; }
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
  if (std::string reason = depthwise::WhyTileInvalid(convs.depthwise, c.depthwise); !reason.empty())
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
  if (IsDepthwise(w.before[0]) && IsPointwise(main)) return PairKind::kDepthwiseFirst;
  if (IsPointwise(w.before[0]) && IsDepthwise(main)) return PairKind::kPointwiseFirst;
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

}  // namespace tilesmith::depthwise_pair
