#include "templates/depthwise/row_geometry.h"

#include <algorithm>

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

std::vector<RowGroup> CutRows(const RowGeometry& g, int64_t first, int64_t last) {
  std::vector<RowGroup> groups;
  for (int64_t row = first; row < last;) {
    RowGroup group;
    group.row = row;
    group.code.looped = !g.config.unroll;
    for (; row < last && static_cast<int64_t>(group.code.rows.size()) < g.config.row_tile; ++row) {
      const KernelRows valid = ValidKernelRows(g.workload, row);
      // A run-time range serves a single row at the image's edge; whole ranges may share the loop.
      const bool alone = group.code.looped && !IsWhole(g.workload, valid);
      if (alone && !group.code.rows.empty()) break;
      group.code.rows.push_back(valid);
      if (alone) {
        ++row;
        break;
      }
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

void CollectCodes(const std::vector<RowGroup>& groups, std::vector<RowCode>& codes) {
  for (const RowGroup& group : groups) {
    if (std::find(codes.begin(), codes.end(), group.code) == codes.end()) codes.push_back(group.code);
  }
}

std::vector<TileRun> CutColumns(const RowGeometry& g, int64_t rows) {
  direct::DirectConfig cut;
  cut.width_tile = std::min(g.workload.ow, g.config.row_tile * g.config.width_tile / rows);
  cut.balance_tiles = g.config.balance_tiles;
  return direct::CutRow(g.workload, cut, g.workload.iw, g.workload.ow);
}

int64_t EstimateCodeBytes(const RowGeometry& g, const std::vector<RowCode>& codes) {
  constexpr int64_t kFmaBytes = 6, kMemoryBytes = 10, kPerOutput = 48, kPerTile = 64;
  const ConvWorkload& w = g.workload;
  const int64_t fma = g.config.weights == Weights::kMemory ? kMemoryBytes : kFmaBytes;
  int64_t bytes = 0;
  for (const RowCode& code : codes) {
    const auto rows = static_cast<int64_t>(code.rows.size());
    int64_t kernel_rows = rows;
    if (!code.looped) {
      kernel_rows = 0;
      for (const KernelRows& valid : code.rows) kernel_rows += valid.last - valid.first;
    }
    for (const TileRun& run : CutColumns(g, rows)) {
      const int64_t columns = std::min<int64_t>(run.width * w.kw, (run.width - 1) * w.sw + w.kw);
      bytes += kernel_rows * (run.width * w.kw * fma + columns * kMemoryBytes);
      bytes += rows * run.width * kPerOutput + w.kw * kMemoryBytes + kPerTile;
    }
  }
  return bytes;
}

RegisterPlan PlanRegisters(const RowGeometry& g, int64_t rows, int64_t width) {
  const bool wide = g.registers > 16;  // AVX-512 has mask registers
  RegisterPlan plan;
  const int64_t weights = g.config.weights == Weights::kRegisters ? g.taps()
                          : g.config.weights == Weights::kRow     ? g.workload.kw
                                                                  : 0;
  const int64_t end = g.masked && !wide ? g.registers - 1 : g.registers;
  plan.fits = rows * width + weights + 1 <= end;
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
