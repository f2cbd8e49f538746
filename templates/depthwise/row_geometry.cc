#include "templates/depthwise/row_geometry.h"

#include <fmt/format.h>

#include <algorithm>

#include "layouts/base/sizes.h"
#include "templates/base/support_checks.h"
#include "templates/depthwise/row_pairs.h"

namespace tilesmith::depthwise {
namespace {

bool IsWhole(const ConvWorkload& w, const KernelRows& rows) { return rows.first == 0 && rows.last == w.kh; }

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

namespace {

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

}  // namespace tilesmith::depthwise
