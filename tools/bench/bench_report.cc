#include "tools/bench/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/cli/targets.h"
#include "tools/doctor/disturbance.h"

namespace tilesmith {
namespace {

std::vector<Cell> SideCells(const OneDnnSide* side) {
  if (side == nullptr) return {NoCell(), NoCell(), NoCell(), NoCell(), NoCell()};
  return {MillisecondsCell(side->seconds), TextCell(std::string(OneDnnAlgorithmName(side->algorithm))),
          RatioCell(side->ratio.median), RatioCell(side->ratio.p10), RatioCell(side->ratio.p90)};
}

void AddLosses(Report& report, const std::vector<BenchRow>& rows, const BenchView& view) {
  std::vector<const BenchRow*> losses;
  for (const BenchRow& row : rows) {
    const OneDnnSide* side = SideOf(row, view);
    if (side != nullptr && side->ratio.median < 1) losses.push_back(&row);
  }
  std::sort(losses.begin(), losses.end(), [&](const BenchRow* a, const BenchRow* b) {
    return SideOf(*a, view)->ratio.median < SideOf(*b, view)->ratio.median;
  });
  Table table("losses", fmt::format("Losses: {} of {} rows", losses.size(), rows.size()),
              {{"workload", "workload"},
               {"ratio", "ratio"},
               {"lost_seconds", "lost ms"},
               {"implementation", "oneDNN's implementation"},
               {"onednn_layouts", "its layouts"}});
  for (const BenchRow* row : losses) {
    const OneDnnSide& side = *SideOf(*row, view);
    table.AddRow({TextCell(WorkloadToString(row->bench.workload)), RatioCell(side.ratio.median),
                  MillisecondsCell(row->bench.seconds * (1 - side.ratio.median) *
                                   static_cast<double>(row->task.count)),
                  TextCell(side.implementation), TextCell(side.layouts)});
  }
  if (losses.empty()) report.Note("\n" + table.title());
  report.AddTable(std::move(table));
}

}  // namespace

const OneDnnSide* SideOf(const BenchRow& row, const BenchView& view) {
  return view.against_direct ? row.bench.Direct() : row.bench.Fastest();
}

BenchTotals TotalsOf(const std::vector<BenchRow>& rows, const BenchView& view) {
  BenchTotals totals;
  double log_sum = 0;
  int compared = 0;
  for (const BenchRow& row : rows) {
    const OneDnnSide* side = SideOf(row, view);
    if (side == nullptr) continue;
    totals.ours_seconds += row.bench.seconds * static_cast<double>(row.task.count);
    totals.onednn_seconds += side->seconds * static_cast<double>(row.task.count);
    log_sum += std::log(side->ratio.median);
    ++compared;
  }
  if (compared > 0) totals.geomean = std::exp(log_sum / compared);
  return totals;
}

namespace {

// The largest error of some thousand outputs, relative to the root mean square of the outputs.
Cell ErrorCell(const std::optional<ConvError>& error) {
  if (!error) return NoCell();
  return {error->max, fmt::format("{:.1e}", error->max)};
}

}  // namespace

std::vector<Column> BenchColumns() {
  return {{"workload", "workload"},
          {"shape", "shape", 6},
          {"count", "count", 3},
          {"gflop", "GFLOP", 5},
          {"ours_seconds", "ours ms"},
          {"onednn_seconds", "oneDNN ms"},
          {"onednn_algorithm", "its algorithm", 6},
          {"ratio", "ratio", 0},
          {"ratio_p10", "p10", 4},
          {"ratio_p90", "p90", 4},
          {"error", "error", 6},
          {"onednn_error", "its error", 6},
          {"peak_share", "% of peak", 3},
          {"template", "template", 2},
          {"layouts", "layouts", 5},
          {"schedule", "schedule", 4},
          {"disturbed_share", "disturbed"},
          {"config", ""},
          {"ratio_low", ""},
          {"ratio_high", ""},
          {"onednn_implementation", ""},
          {"onednn_layouts", ""},
          {"onednn_steps_apart", ""}};
}

std::vector<Cell> BenchCells(const BenchRow& row, const BenchView& view) {
  const ConvWorkload& workload = row.bench.workload;
  const double flops = workload.flops();
  const std::string text = WorkloadToString(workload);
  std::vector<Cell> cells{TextCell(row.task.name.empty() ? text : row.task.name + " " + text),
                          TextCell(ShapeText(workload)), CountCell(row.task.count), GflopCell(flops),
                          MillisecondsCell(row.bench.seconds)};
  const OneDnnSide* side = SideOf(row, view);
  for (Cell& cell : SideCells(side)) cells.push_back(std::move(cell));
  cells.push_back(ErrorCell(row.bench.error));
  cells.push_back(ErrorCell(side ? side->error : std::nullopt));
  cells.push_back(view.peak_flops > 0 ? PercentCell(flops / row.bench.seconds / view.peak_flops) : NoCell());
  cells.push_back(TextCell(row.bench.schedule.template_name));
  cells.push_back(TextCell(LayoutsText(row.bench.layouts)));
  cells.push_back(TextCell(row.bench.schedule.origin));
  cells.push_back(DisturbedCell(row.disturbed_share));
  cells.push_back(KnobsCell(row.bench.schedule.config));
  cells.push_back(side ? RatioCell(side->ratio.low) : NoCell());
  cells.push_back(side ? RatioCell(side->ratio.high) : NoCell());
  cells.push_back(side ? TextCell(side->implementation) : NoCell());
  cells.push_back(side ? TextCell(side->layouts) : NoCell());
  cells.push_back(side && side->steps_apart > 0 ? RealCell(side->steps_apart, 0) : NoCell());
  return cells;
}

Table BenchTable(const std::vector<BenchRow>& rows, const BenchView& view, const TableName& name) {
  Table table(name.key, name.title, BenchColumns());
  for (const BenchRow& row : rows) table.AddRow(BenchCells(row, view));
  return table;
}

void AddFusedRows(Report& report, const std::vector<BenchRow>& rows, const TableName& name) {
  Table table(name.key, name.title,
              {{"workload", "workload"},
               {"fused_seconds", "fused ms"},
               {"separate_seconds", "separate ms"},
               {"ratio", "ratio"},
               {"ratio_p10", "p10"},
               {"ratio_p90", "p90"}});
  for (const BenchRow& row : rows) {
    if (row.bench.separate_seconds == 0) continue;
    const PairedRatio& ratio = row.bench.separate_ratio;
    table.AddRow({TextCell(WorkloadToString(row.bench.workload)), MillisecondsCell(row.bench.seconds),
                  MillisecondsCell(row.bench.separate_seconds), RatioCell(ratio.median), RatioCell(ratio.p10),
                  RatioCell(ratio.p90)});
  }
  if (!table.rows().empty()) report.AddTable(std::move(table));
}

BenchTotals AddBenchRows(Report& report, const std::vector<BenchRow>& rows, const BenchView& view) {
  report.AddTable(BenchTable(rows, view));
  const BenchTotals totals = TotalsOf(rows, view);
  report.Fact("ours_total_seconds", "ours, all convs ms", MillisecondsCell(totals.ours_seconds));
  report.Fact("onednn_total_seconds", "oneDNN, all convs ms", MillisecondsCell(totals.onednn_seconds));
  report.Fact("total_ratio", "ratio of totals",
              totals.ours_seconds > 0 ? RatioCell(totals.onednn_seconds / totals.ours_seconds) : NoCell());
  report.Fact("geomean_ratio", "geometric mean ratio",
              totals.geomean > 0 ? RatioCell(totals.geomean) : NoCell());
  AddLosses(report, rows, view);
  AddFusedRows(report, rows, {"fused", "Fused, beside ours one after the other:"});
  return totals;
}

}  // namespace tilesmith
