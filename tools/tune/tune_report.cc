#include "tools/tune/tune_report.h"

#include "tools/cli/targets.h"
#include "tools/doctor/machine_watch.h"

namespace tilesmith {
namespace {

std::vector<Cell> Cells(const TuneRow& row) {
  const TuneResult& result = row.result;
  int failures = 0;
  for (const auto& [status, count] : result.failures) failures += count;
  const double seconds = result.best ? result.best->seconds : 0;
  const double rate = result.search_seconds > 0 ? result.trials_measured / result.search_seconds : 0;
  return {TextCell(WorkloadToString(row.task.workload)),
          TextCell(FusionText(row.task.workload)),
          CountCell(row.task.count),
          result.best ? MillisecondsCell(seconds) : NoCell(),
          result.best ? RealCell(row.task.workload.flops() / seconds * 1e-9, 1) : NoCell(),
          result.best ? TextCell(result.best->template_name) : NoCell(),
          result.best ? TextCell(LayoutsText(result.best->layouts)) : NoCell(),
          TextCell(row.cold_weights ? "cold" : "warm"),
          row.baseline ? MillisecondsCell(row.baseline->seconds) : NoCell(),
          row.baseline && result.best ? RatioCell(row.baseline->seconds / seconds) : NoCell(),
          CountCell(result.trials_measured),
          CountCell(result.layout_trials),
          CountCell(failures),
          result.search_seconds > 0 ? RealCell(rate, 0) : NoCell(),
          TextCell(row.known ? "database" : ""),
          DisturbedCell(row.disturbance.share()),
          DisturbedCell(row.baseline_disturbed_share)};
}

}  // namespace

void AddTuningTable(Report& report, std::span<const TuneRow> rows) {
  Table& table = report.AddTable({"tasks",
                                  "",
                                  {{"workload", "workload"},
                                   {"fused", "fused", 4},
                                   {"count", "count", 2},
                                   {"best_seconds", "best ms"},
                                   {"gflops", "GFLOP/s", 4},
                                   {"template", "template", 3},
                                   {"layouts", "layouts", 5},
                                   {"weights", "weights", 5},
                                   {"onednn_seconds", "oneDNN ms"},
                                   {"ratio", "ratio", 0},
                                   {"trials", "trials", 3},
                                   {"layout_trials", "of them layouts", 6},
                                   {"failures", "failed", 4},
                                   {"trials_per_second", "trials/s", 6},
                                   {"known", "known from", 5},
                                   {"disturbed_share", "disturbed"},
                                   {"onednn_disturbed_share", "oneDNN disturbed", 4}}});
  for (const TuneRow& row : rows) table.AddRow(Cells(row));
}

void AddNetworkTotal(Report& report, std::span<const TuneRow> rows, double network_seconds) {
  const double onednn = OneDnnSeconds(rows);
  if (!(network_seconds > 0)) return;
  report.Fact("network_seconds", "network ms, about", MillisecondsCell(network_seconds));
  if (!(onednn > 0)) return;
  report.Fact("network_onednn_seconds", "oneDNN ms", MillisecondsCell(onednn));
  report.Fact("network_ratio", "ratio", RatioCell(onednn / network_seconds));
}

}  // namespace tilesmith
