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

namespace {

double PeakShare(const BenchRow& row, const BenchView& view) {
  return view.peak_flops > 0 ? row.bench.workload.flops() / row.bench.seconds / view.peak_flops : 0;
}

// How far below its goals a row is, as a fraction of them; 0 when it meets them or has none.
double Shortfall(const SuiteRow& goal, const BenchRow& row, const BenchView& view) {
  double shortfall = 0;
  const OneDnnSide* side = SideOf(row, view);
  if (goal.ratio_goal > 0 && side != nullptr) {
    shortfall = std::max(shortfall, 1 - side->ratio.median / goal.ratio_goal);
  }
  if (goal.peak_goal > 0 && view.peak_flops > 0) {
    shortfall = std::max(shortfall, 1 - PeakShare(row, view) / goal.peak_goal);
  }
  return shortfall;
}

std::string RowName(const BenchRow& row) {
  return row.task.name.empty() ? WorkloadToString(row.bench.workload) : row.task.name;
}

const BenchRow* WorstRow(const SuiteBench& bench) {
  const BenchRow* worst = nullptr;
  for (const BenchRow& row : bench.rows) {
    const OneDnnSide* side = SideOf(row, bench.view);
    if (side == nullptr) continue;
    if (worst == nullptr || side->ratio.median < SideOf(*worst, bench.view)->ratio.median) worst = &row;
  }
  return worst;
}

Cell GoalCell(double goal) { return goal > 0 ? RatioCell(goal) : NoCell(); }

// For fused workloads: the same, one kernel after the other.
std::vector<Cell> SeparateCells(const ConvBench& bench) {
  if (bench.separate_seconds == 0) return {NoCell(), NoCell(), NoCell(), NoCell()};
  const PairedRatio& ratio = bench.separate_ratio;
  return {MillisecondsCell(bench.separate_seconds), RatioCell(ratio.median), RatioCell(ratio.p10),
          RatioCell(ratio.p90)};
}

Table SummaryTable(const std::vector<SuiteBench>& suites) {
  Table table("suites", "Suites",
              {{"suite", "suite"},
               {"title", "what"},
               {"rows", "rows"},
               {"against", "oneDNN"},
               {"weights", "weights"},
               {"geomean", "geomean"},
               {"geomean_goal", "goal"},
               {"worst_ratio", "worst"},
               {"worst_row", "worst row"},
               {"below_goal", "below goal"}});
  for (const SuiteBench& bench : suites) {
    const double geomean = TotalsOf(bench.rows, bench.view).geomean;
    int64_t below = 0;
    for (size_t i = 0; i < bench.rows.size(); ++i) {
      below += Shortfall(bench.suite.rows[i], bench.rows[i], bench.view) > 0;
    }
    const BenchRow* worst = WorstRow(bench);
    table.AddRow({TextCell(bench.suite.name), TextCell(bench.suite.title),
                  CountCell(static_cast<int64_t>(bench.rows.size())),
                  TextCell(bench.view.against_direct ? "direct" : "best"),
                  TextCell(bench.suite.cold_weights ? "cold" : "warm"),
                  geomean > 0 ? RatioCell(geomean) : NoCell(), GoalCell(bench.suite.geomean_goal),
                  worst ? RatioCell(SideOf(*worst, bench.view)->ratio.median) : NoCell(),
                  worst ? TextCell(RowName(*worst)) : NoCell(), CountCell(below)});
  }
  return table;
}

Table ShortfallTable(const std::vector<SuiteBench>& suites) {
  Table table("below_goal", "Rows below their goal",
              {{"suite", "suite"},
               {"workload", "workload"},
               {"ratio", "ratio"},
               {"ratio_goal", "goal"},
               {"peak_share", "% of peak"},
               {"peak_goal", "goal"},
               {"template", "template"},
               {"implementation", "oneDNN's implementation"}});
  for (const SuiteBench& bench : suites) {
    for (size_t i = 0; i < bench.rows.size(); ++i) {
      const BenchRow& row = bench.rows[i];
      const SuiteRow& goal = bench.suite.rows[i];
      if (Shortfall(goal, row, bench.view) <= 0) continue;
      const OneDnnSide* side = SideOf(row, bench.view);
      const double share = PeakShare(row, bench.view);
      table.AddRow({TextCell(bench.suite.name), TextCell(RowName(row)),
                    side ? RatioCell(side->ratio.median) : NoCell(), GoalCell(goal.ratio_goal),
                    share > 0 ? PercentCell(share) : NoCell(),
                    goal.peak_goal > 0 ? PercentCell(goal.peak_goal) : NoCell(),
                    TextCell(row.bench.schedule.template_name),
                    side ? TextCell(side->implementation) : NoCell()});
    }
  }
  return table;
}

}  // namespace

void AddSuites(Report& report, const std::vector<SuiteBench>& suites) {
  for (const SuiteBench& bench : suites) {
    report.AddTable(BenchTable(bench.rows, bench.view, {bench.suite.name, bench.suite.title}));
    AddFusedRows(report, bench.rows,
                 {bench.suite.name + "_fused", "Fused, beside ours one after the other:"});
  }
  report.AddTable(SummaryTable(suites));
  report.AddTable(ShortfallTable(suites));
}

Table SuiteRowsTable(const std::vector<SuiteBench>& suites) {
  std::vector<Column> columns = BenchColumns();
  columns.insert(columns.begin(), {"suite", "suite"});
  columns.push_back({"ratio_goal", "goal"});
  columns.push_back({"peak_goal", "peak goal"});
  columns.push_back({"separate_seconds", "separate ms"});
  columns.push_back({"separate_ratio", "ratio"});
  columns.push_back({"separate_ratio_p10", "p10"});
  columns.push_back({"separate_ratio_p90", "p90"});
  Table table("rows", "", std::move(columns));
  for (const SuiteBench& bench : suites) {
    for (size_t i = 0; i < bench.rows.size(); ++i) {
      std::vector<Cell> cells = BenchCells(bench.rows[i], bench.view);
      cells.insert(cells.begin(), TextCell(bench.suite.name));
      cells.push_back(GoalCell(bench.suite.rows[i].ratio_goal));
      cells.push_back(GoalCell(bench.suite.rows[i].peak_goal));
      for (Cell& cell : SeparateCells(bench.rows[i].bench)) cells.push_back(std::move(cell));
      table.AddRow(std::move(cells));
    }
  }
  return table;
}

double GeometricMeanRatio(const std::vector<SuiteBench>& suites) {
  double log_sum = 0;
  int compared = 0;
  for (const SuiteBench& bench : suites) {
    for (const BenchRow& row : bench.rows) {
      const OneDnnSide* side = SideOf(row, bench.view);
      if (side == nullptr) continue;
      log_sum += std::log(side->ratio.median);
      ++compared;
    }
  }
  return compared > 0 ? std::exp(log_sum / compared) : 0;
}

}  // namespace tilesmith
