#include "tools/bench/suite_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tilesmith {
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
