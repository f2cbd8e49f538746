// The comparison table.
#pragma once

#include <vector>

#include "tools/bench/conv_bench.h"
#include "tools/cli/report.h"
#include "tools/cli/targets.h"
#include "tools/cli/tasks.h"

namespace tilesmith {

struct BenchRow {
  ConvTask task;
  ConvBench bench;
  double disturbed_share = 0;  // of the time, in which others had the cores
};

struct BenchView {
  bool against_direct = false;  // else against oneDNN's fastest
  double peak_flops = 0;        // 0: unknown
};

// Over the rows that oneDNN can do.
struct BenchTotals {
  double ours_seconds = 0, onednn_seconds = 0;  // times counts
  double geomean = 0;                           // of the rows' ratios; 0 without rows
};

// oneDNN's side of the comparison; nullptr when it cannot do the row.
const OneDnnSide* SideOf(const BenchRow& row, const BenchView& view);
BenchTotals TotalsOf(const std::vector<BenchRow>& rows, const BenchView& view);

struct TableName {
  std::string key, title;
};
Table BenchTable(const std::vector<BenchRow>& rows, const BenchView& view,
                 const TableName& name = {"rows", ""});
// JSON and CSV also have the config, the 95% interval of the ratio, and what oneDNN ran.
std::vector<Column> BenchColumns();
std::vector<Cell> BenchCells(const BenchRow& row, const BenchView& view);
// Fused workloads beside the same computed by one kernel after the other; nothing where there are none.
void AddFusedRows(Report& report, const std::vector<BenchRow>& rows, const TableName& name);
// The table, the totals, and every row where oneDNN is the faster one.
BenchTotals AddBenchRows(Report& report, const std::vector<BenchRow>& rows, const BenchView& view);

// Suites beside what is expected of them: one line per suite, and the rows that fall short.
struct SuiteBench {
  Suite suite;
  std::vector<BenchRow> rows;  // as many as were measured before an interruption
  BenchView view;
};

// Adds a table per suite, one line for each suite, and every row below its goal.
void AddSuites(Report& report, const std::vector<SuiteBench>& suites);

// All rows of all suites, with the suite's name in front, the goals behind, and what fused ones take unfused.
Table SuiteRowsTable(const std::vector<SuiteBench>& suites);

// Over the rows of all suites that oneDNN can do; 0 when there are none.
double GeometricMeanRatio(const std::vector<SuiteBench>& suites);

}  // namespace tilesmith
