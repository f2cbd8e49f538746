#include "templates/depthwise/schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "layouts/base/sizes.h"
#include "templates/base/conv_template.h"
#include "templates/base/image_strides.h"
#include "templates/depthwise/row_pairs.h"

namespace tilesmith::depthwise {
namespace {

bool IsWhole(const ConvWorkload& w, const KernelRows& rows) { return rows.first == 0 && rows.last == w.kh; }

// Input rows of a pair that exist, counted from the first that its first output row reads.
KernelRows PairInput(const RowGeometry& g, int64_t row) {
  const int64_t top = g.InputRow(row);
  const int64_t last = std::clamp<int64_t>(g.workload.ih - top, 0, g.workload.kh + 1);
  return {std::clamp<int64_t>(-top, 0, last), last};
}

RowGroup CutPair(const RowGeometry& g, int64_t row, int64_t last) {
  const KernelRows input = PairInput(g, row);
  const bool whole = input.first == 0 && input.last == g.workload.kh + 1;
  const KernelRows valid = ValidKernelRows(g.workload, row);
  if (row + 2 > last && g.config.unroll) return {row, {CodeKind::kUnrolled, 1, {valid}}, {}};
  if (!g.config.unroll && (row + 2 > last || !whole)) return {row, {CodeKind::kLooped, 1, {}}, valid};
  return {row, {CodeKind::kPair, 2, {input}}, {}};
}

RowGroup CutUnrolled(const RowGeometry& g, int64_t row, int64_t last) {
  RowGroup group{row, {CodeKind::kUnrolled, std::min(g.config.row_tile, last - row), {}}, {}};
  for (int64_t r = 0; r < group.code.rows; ++r)
    group.code.valid.push_back(ValidKernelRows(g.workload, row + r));
  return group;
}

// A run-time range serves a single row at the image's edge; rows with all kernel rows share a loop.
RowGroup CutLooped(const RowGeometry& g, int64_t row, int64_t last) {
  RowGroup group{row, {CodeKind::kLooped, 1, {}}, ValidKernelRows(g.workload, row)};
  if (!IsWhole(g.workload, group.range)) return group;
  const int64_t most = std::min(g.config.row_tile, last - row);
  while (group.code.rows < most && IsWhole(g.workload, ValidKernelRows(g.workload, row + group.code.rows)))
    ++group.code.rows;
  return group;
}

}  // namespace

KernelRows ValidKernelRows(const ConvWorkload& w, int64_t row) {
  const int64_t top = row * w.sh - w.ph;
  const int64_t step = w.dh + 1;
  KernelRows rows;
  rows.first = top < 0 ? CeilDiv(-top, step) : 0;
  rows.last = std::clamp<int64_t>(top >= w.ih ? 0 : CeilDiv(w.ih - top, step), 0, w.kh);
  rows.first = std::min(rows.first, rows.last);
  return rows;
}

std::vector<RowGroup> CutRows(const RowGeometry& g, int64_t first, int64_t last) {
  std::vector<RowGroup> groups;
  for (int64_t row = first; row < last; row += groups.back().code.rows) {
    groups.push_back(g.config.pairs    ? CutPair(g, row, last)
                     : g.config.unroll ? CutUnrolled(g, row, last)
                                       : CutLooped(g, row, last));
  }
  return groups;
}

void CollectCodes(const std::vector<RowGroup>& groups, std::vector<RowCode>& codes) {
  for (const RowGroup& group : groups) {
    if (std::find(codes.begin(), codes.end(), group.code) == codes.end()) codes.push_back(group.code);
  }
}

namespace {

int64_t TileWidth(const RowGeometry& g, const RowCode& code) {
  int64_t width = std::min(g.workload.ow, g.config.row_tile * g.config.width_tile / code.rows);
  while (code.rows < g.config.row_tile && width > 1 && !PlanRegisters(g, code, width).fits) --width;
  return width;
}

}  // namespace

std::vector<TileRun> CutColumns(const RowGeometry& g, const RowCode& code) {
  return CutRow(g.workload, {g.workload.iw, g.workload.ow, TileWidth(g, code), true});
}

int64_t EstimateCodeBytes(const RowGeometry& g, const std::vector<RowCode>& codes) {
  constexpr int64_t kFmaBytes = 6, kMemoryBytes = 10, kPerOutput = 48, kPerTile = 64, kPerHeld = 10,
                    kPerPlane = 96;
  const ConvWorkload& w = g.workload;
  int64_t bytes = 0;
  for (const RowCode& code : codes) {
    const int64_t fma = PlanRegisters(g, code, 1).mode == Weights::kMemory ? kMemoryBytes : kFmaBytes;
    int64_t kernel_rows = code.rows;  // unrolled, of all output rows
    int64_t pixel_bytes = kMemoryBytes;
    if (code.kind == CodeKind::kUnrolled) {
      kernel_rows = 0;
      for (const KernelRows& valid : code.valid) kernel_rows += valid.last - valid.first;
    } else if (code.kind == CodeKind::kPair) {
      kernel_rows = PairProducts(w.kh);
      pixel_bytes = 2 * kMemoryBytes;
    }
    for (const TileRun& run : CutColumns(g, code)) {
      const int64_t columns = std::min<int64_t>(run.width * w.kw, (run.width - 1) * w.sw + w.kw);
      bytes += kernel_rows * (run.width * w.kw * fma + columns * pixel_bytes + w.kw * kMemoryBytes);
      bytes += code.rows * run.width * kPerOutput + kPerTile;
      if (g.planes_in_tiles()) bytes += PlanRegisters(g, code, 1).held * kPerHeld + kPerPlane;
    }
  }
  return bytes;
}

int64_t PairWeights(const RowGeometry& g) {
  return g.config.pairs ? PairProducts(g.workload.kh) * g.workload.kw : 0;
}

RegisterPlan PlanRegisters(const RowGeometry& g, const RowCode& code, int64_t width) {
  const bool wide = g.registers > 16;  // AVX-512 has mask registers
  const bool pair = code.kind == CodeKind::kPair;
  RegisterPlan plan;
  plan.mode = g.config.weights;
  if (plan.mode == Weights::kRegisters) {
    plan.held = static_cast<int>(g.config.pairs ? PairWeights(g) : g.taps());
    if (g.config.pairs && !pair) plan.mode = Weights::kRow;
  }
  // A pass of a pair multiplies two products of two pixels each.
  if (plan.mode == Weights::kRow) plan.weights = static_cast<int>((pair ? 2 : 1) * g.workload.kw);
  plan.mask = g.registers - 1;
  plan.first_held = (g.masked && !wide ? g.registers - 1 : g.registers) - plan.held;
  plan.first_weight = plan.first_held - plan.weights;
  plan.accumulators = static_cast<int>(code.rows * width);
  plan.first_temp = plan.accumulators;
  plan.temps = plan.first_weight - plan.first_temp;
  plan.fits = plan.temps >= (pair ? 4 : 1);
  return plan;
}

std::string WhyNotEmitted(const RowGeometry& g, const std::vector<RowCode>& codes) {
  for (const RowCode& code : codes) {
    const int64_t width = code.rows == g.config.row_tile ? g.config.width_tile : TileWidth(g, code);
    if (!PlanRegisters(g, code, width).fits)
      return fmt::format("register tile {} x {} does not fit {} registers", code.rows, width, g.registers);
  }
  const int64_t bytes = EstimateCodeBytes(g, codes);
  if (bytes > kMaxCodeBytes) return fmt::format("some {} bytes of code (at most {})", bytes, kMaxCodeBytes);
  return "";
}

namespace {

// The next block of rows that may need other code. Those whose rows read all kernel rows inside the input are
// all alike.
int64_t NextUnlike(const Schedule& g, int64_t block) {
  const ConvWorkload& w = g.rows.workload;
  const int64_t rows = g.rows.config.rows;
  const int64_t last_top =
      w.ih - 1 + w.ph - (w.kh - 1) * (w.dh + 1);  // of rows that end inside, before padding
  if (g.rows.InputRow(block * rows) < 0 || last_top < 0) return block + 1;
  const int64_t whole_rows = std::min(w.oh, last_top / w.sh + 1);
  return std::max(block + 1, whole_rows / rows);
}

}  // namespace

std::vector<RowGroup> Schedule::Groups(int64_t block) const {
  const int64_t first = block * rows.config.rows;
  return CutRows(rows, first, std::min(rows.workload.oh, first + rows.config.rows));
}

Schedule MakeSchedule(const ConvWorkload& w, const DepthwiseConfig& config, const Target& cpu) {
  Schedule g;
  const Layout layout = LayoutOfBlockKnob(config.block);
  g.rows.workload = w;
  g.rows.config = config;
  g.rows.vector_floats = cpu.vector_floats();
  g.rows.registers = cpu.vector_registers();
  const int64_t floats = cpu.vector_floats();
  g.vectors = (w.oc + floats - 1) / floats;
  const auto lanes = static_cast<int>(w.oc % floats);
  g.rows.masked = layout.is_nhwc() && lanes > 0;
  // Zero pixels with zero weights give zeros unless the activation makes something of them.
  g.lanes = g.rows.masked || w.post.activation.Apply(0.0F) != 0.0F ? lanes : 0;
  g.padding_vectors = layout.is_nhwc() ? 0 : layout.PaddedChannels(w.oc) / floats - g.vectors;
  const int64_t block = layout.BlockFor(w.oc);
  const int64_t vectors_per_block = layout.is_nhwc() ? g.vectors : block / floats;
  const int64_t in_bytes = ElementBytes(config.types.in), out_bytes = ElementBytes(config.types.out);
  g.rows.in_pixel_bytes = block * in_bytes;
  g.rows.out_pixel_bytes = block * out_bytes;
  g.rows.in_row_bytes = w.iw * g.rows.in_pixel_bytes;
  g.rows.out_row_bytes = w.ow * g.rows.out_pixel_bytes;
  g.in = {vectors_per_block, floats * in_bytes, w.ih * g.rows.in_row_bytes};
  g.out = {vectors_per_block, floats * out_bytes, w.oh * g.rows.out_row_bytes};
  for (int64_t i = 0; i < g.row_blocks(); i = NextUnlike(g, i)) CollectCodes(g.Groups(i), g.codes);
  return g;
}

void ReadScratch(Schedule& g, int64_t rows) {
  g.rows.in_pixel_bytes = g.rows.vector_bytes();
  g.rows.in_row_bytes = g.rows.workload.iw * g.rows.in_pixel_bytes;
  g.in = {1, g.rows.in_pixel_bytes, rows * g.rows.in_row_bytes};
}

void WriteScratch(Schedule& g, int64_t rows) {
  g.rows.out_pixel_bytes = g.rows.vector_bytes();
  g.rows.out_row_bytes = g.rows.workload.ow * g.rows.out_pixel_bytes;
  g.out = {1, g.rows.out_pixel_bytes, rows * g.rows.out_row_bytes};
  g.padding_vectors = 0;
}

TaskGrid GridOf(const Schedule& g) {
  return {.images = g.rows.workload.mb,
          .channels = g.vector_blocks(),
          .rows = g.row_blocks(),
          .channels_inner = g.rows.config.block == 0,
          .height = g.rows.workload.oh,
          .part_units = g.rows.config.rows};
}

LoopFeatures FeaturesOf(const Schedule& g) {
  const ConvWorkload& w = g.rows.workload;
  const DepthwiseConfig& c = g.rows.config;
  constexpr double kBytes = sizeof(float);
  const int64_t taps = g.rows.taps(), lanes = g.rows.vector_floats;
  const int64_t tile = c.row_tile * c.width_tile;
  const int64_t pixels = std::min(c.row_tile * w.kh, (c.row_tile - 1) * w.sh + w.kh) *
                         std::min(c.width_tile * w.kw, (c.width_tile - 1) * w.sw + w.kw);
  const int64_t weights = c.weights == Weights::kMemory ? tile * taps : c.weights == Weights::kRow ? taps : 0;
  const int64_t rows = std::min(c.rows, w.oh);
  // A pair of rows takes two thirds of the multiplications (row_pairs.h).
  const double products = c.pairs ? 2.0 / 3 : 1;
  LoopFeatures f;
  f.flops = products * 2.0 * static_cast<double>(w.mb * w.oh * w.ow) *
            static_cast<double>(g.vectors * lanes * taps);
  f.fma_per_load = products * static_cast<double>(tile * taps) / static_cast<double>(pixels + weights);
  f.accumulators = static_cast<double>(tile);
  f.code_bytes = static_cast<double>(EstimateCodeBytes(g.rows, g.codes));
  f.weight_bytes = static_cast<double>(g.vectors * lanes * PlaneWeights(g.rows)) * kBytes;
  f.tasks = static_cast<double>(w.mb * g.vector_blocks() * g.row_blocks());
  f.task_input_bytes =
      InputBytes(w, rows, c.vectors * lanes) * static_cast<double>(ElementBytes(c.types.in)) / kBytes;
  f.task_weight_bytes = static_cast<double>(c.vectors * lanes * PlaneWeights(g.rows)) * kBytes;
  f.task_output_bytes = static_cast<double>(rows * w.ow * c.vectors * lanes * ElementBytes(c.types.out));
  return f;
}

namespace {

const char* WeightsText(Weights weights) {
  switch (weights) {
    case Weights::kRegisters:
      return "weights of all taps in registers";
    case Weights::kRow:
      return "weights of one kernel row in registers";
    case Weights::kMemory:
      return "weights are operands of the FMAs";
  }
  return "";
}

}  // namespace

LoopPart PlaneLoops(const Schedule& g, int64_t vectors) {
  const ConvWorkload& w = g.rows.workload;
  const DepthwiseConfig& c = g.rows.config;
  const int64_t lanes = g.rows.vector_floats;
  const int64_t width = std::min(c.width_tile, w.ow);
  const LoopKind kernel_rows = c.unroll || c.pairs ? LoopKind::kUnrolled : LoopKind::kLoop;
  LoopPart part;
  part.loops = {LoopOver("oh", c.rows, c.row_tile, LoopKind::kLoop),
                LoopOver("ow", w.ow, width, LoopKind::kLoop, "register tiles")};
  part.loops.insert(g.rows.planes_in_tiles() ? part.loops.end() : part.loops.begin(),
                    LoopOver("c", vectors * lanes, lanes, LoopKind::kLoop, WeightsText(c.weights)));
  for (const Loop& loop : {LoopOver("kh", w.kh, 1, kernel_rows), LoopOver("kw", w.kw, 1, LoopKind::kUnrolled),
                           LoopOver("oh", c.row_tile, 1, LoopKind::kUnrolled, "register tile: rows"),
                           LoopOver("ow", width, 1, LoopKind::kUnrolled, "register tile: positions"),
                           LoopOver("c", lanes, 1, LoopKind::kVector)})
    part.loops.push_back(loop);
  part.body = c.pairs ? "sum += weights * input, both rows with two thirds of the multiplications"
                      : "sum += weights * input";
  return part;
}

LoopNest NestOf(const Schedule& g) {
  const ConvWorkload& w = g.rows.workload;
  const DepthwiseConfig& c = g.rows.config;
  const int64_t lanes = g.rows.vector_floats, width = std::min(c.width_tile, w.ow);
  LoopNest nest;
  nest.tasks = {
      LoopOver("mb", w.mb, 1, LoopKind::kTasks),
      LoopOver("c", g.vectors * lanes, c.vectors * lanes, LoopKind::kTasks, "vectors of channels of a task"),
      LoopOver("oh", w.oh, c.rows, LoopKind::kTasks, "output rows of a task")};
  nest.parts = {PlaneLoops(g, c.vectors)};
  const int64_t rows = std::min(w.ih, (c.row_tile - 1) * w.sh + (w.kh - 1) * (w.dh + 1) + 1);
  const int64_t columns = std::min(w.iw, (width - 1) * w.sw + (w.kw - 1) * (w.dw + 1) + 1);
  nest.tile_input_bytes = static_cast<double>(rows * columns * g.in.vector_bytes);
  nest.tile_weight_bytes = static_cast<double>(PlaneWeights(g.rows) * g.rows.vector_bytes());
  nest.tile_output_bytes = static_cast<double>(c.row_tile * width * g.out.vector_bytes);
  return nest;
}

}  // namespace tilesmith::depthwise
