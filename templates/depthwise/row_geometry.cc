#include "templates/depthwise/row_geometry.h"

#include <algorithm>

#include "templates/depthwise/row_pairs.h"

namespace tilesmith::depthwise {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

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
  if (row + 2 > last || (!whole && !g.config.unroll))
    return {row, {CodeKind::kLooped, 1, {}}, ValidKernelRows(g.workload, row)};
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

std::vector<TileRun> CutColumns(const RowGeometry& g, int64_t rows) {
  const int64_t width = std::min(g.workload.ow, g.config.row_tile * g.config.width_tile / rows);
  return CutRow(g.workload, {g.workload.iw, g.workload.ow, width, g.config.balance_tiles});
}

Weights WeightsOf(const RowGeometry& g, const RowCode& code) {
  return g.config.pairs && code.kind != CodeKind::kPair ? Weights::kMemory : g.config.weights;
}

int64_t EstimateCodeBytes(const RowGeometry& g, const std::vector<RowCode>& codes) {
  constexpr int64_t kFmaBytes = 6, kMemoryBytes = 10, kPerOutput = 48, kPerTile = 64;
  const ConvWorkload& w = g.workload;
  int64_t bytes = 0;
  for (const RowCode& code : codes) {
    const int64_t fma = WeightsOf(g, code) == Weights::kMemory ? kMemoryBytes : kFmaBytes;
    int64_t kernel_rows = code.rows;  // unrolled, of all output rows
    int64_t pixel_bytes = kMemoryBytes;
    if (code.kind == CodeKind::kUnrolled) {
      kernel_rows = 0;
      for (const KernelRows& valid : code.valid) kernel_rows += valid.last - valid.first;
    } else if (code.kind == CodeKind::kPair) {
      kernel_rows = PairProducts(w.kh);
      pixel_bytes = 2 * kMemoryBytes;
    }
    for (const TileRun& run : CutColumns(g, code.rows)) {
      const int64_t columns = std::min<int64_t>(run.width * w.kw, (run.width - 1) * w.sw + w.kw);
      bytes += kernel_rows * (run.width * w.kw * fma + columns * pixel_bytes + w.kw * kMemoryBytes);
      bytes += code.rows * run.width * kPerOutput + kPerTile;
    }
  }
  return bytes;
}

int64_t PairWeights(const RowGeometry& g) {
  return g.config.pairs ? PairProducts(g.workload.kh) * g.workload.kw : 0;
}

RegisterPlan PlanRegisters(const RowGeometry& g, int64_t rows, int64_t width) {
  const bool wide = g.registers > 16;  // AVX-512 has mask registers
  // A pass of a pair multiplies two products of two pixels each.
  const int64_t products = g.config.pairs ? 2 : 1;
  const int64_t temps = g.config.pairs ? 4 : 1;
  int64_t weights = 0;
  if (g.config.weights == Weights::kRegisters) weights = g.config.pairs ? PairWeights(g) : g.taps();
  if (g.config.weights == Weights::kRow) weights = products * g.workload.kw;
  const int64_t end = g.masked && !wide ? g.registers - 1 : g.registers;
  RegisterPlan plan;
  plan.fits = rows * width + weights + temps <= end;
  if (!plan.fits) return plan;
  plan.mask = g.registers - 1;
  plan.accumulators = static_cast<int>(rows * width);
  plan.weights = static_cast<int>(weights);
  plan.first_weight = static_cast<int>(end - weights);
  plan.first_temp = plan.accumulators;
  plan.temps = plan.first_weight - plan.first_temp;
  return plan;
}

}  // namespace tilesmith::depthwise
