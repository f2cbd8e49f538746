// Suites beside what is expected of them: one line per suite, and the rows that fall short.
#pragma once

#include <vector>

#include "tools/bench/bench_report.h"
#include "tools/cli/targets.h"

namespace tilesmith {

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
