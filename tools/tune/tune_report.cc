#include "tools/tune/tune_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/cli/targets.h"
#include "tools/doctor/disturbance.h"

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
          row.baseline_seconds ? MillisecondsCell(*row.baseline_seconds) : NoCell(),
          row.baseline_seconds && result.best ? RatioCell(*row.baseline_seconds / seconds) : NoCell(),
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
  const double onednn = BaselineSeconds(rows);
  if (!(network_seconds > 0)) return;
  report.Fact("network_seconds", "network ms, about", MillisecondsCell(network_seconds));
  if (!(onednn > 0)) return;
  report.Fact("network_onednn_seconds", "oneDNN ms", MillisecondsCell(onednn));
  report.Fact("network_ratio", "ratio", RatioCell(onednn / network_seconds));
}

void AddShapes(Report& report, const ModelOptions& model) {
  if (model.input_shapes.empty()) return;
  report.Fact("input_shapes", "input shapes",
              TextCell(fmt::format("{}", fmt::join(model.input_shapes, " "))));
}

void AddOutputError(Report& report, double error, bool random_inputs) {
  report.Fact("output_error",
              random_inputs ? "output error, random inputs" : "output error, calibration's inputs",
              ErrorCell(error));
}

Cell ErrorCell(double error) { return {error, fmt::format("{:.2g}", error)}; }

Table TypesTable(std::span<const TypeRun> runs, bool random_inputs) {
  Table table(
      "types",
      fmt::format("types, executed by turns (95% interval of the plan's gain); errors of the outputs on {} "
                  "inputs",
                  random_inputs ? "random" : "the calibration's"),
      {{"type", "types"},
       {"measured_seconds", "measured ms"},
       {"gain", "plan's gain"},
       {"gain_low", "from"},
       {"gain_high", "to"},
       {"output_error", "output error"},
       {"agreement", "same largest"},
       {"is_plan", "the plan"},
       {"note", "note"}});
  const auto gain = [](double ratio) { return ChangeCell(ratio - 1); };
  for (const TypeRun& run : runs) {
    const bool ran = run.seconds > 0, beside = ran && !run.is_plan;
    const bool classifies = run.difference && run.difference->rows > 0;
    table.AddRow({TextCell(run.name),
                  ran ? MillisecondsCell(run.seconds) : NoCell(),
                  beside ? gain(run.ratio.median) : NoCell(),
                  beside ? gain(run.ratio.low) : NoCell(),
                  beside ? gain(run.ratio.high) : NoCell(),
                  run.difference ? ErrorCell(run.difference->error) : NoCell(),
                  classifies ? PercentCell(static_cast<double>(run.difference->agreeing) /
                                           static_cast<double>(run.difference->rows))
                             : NoCell(),
                  {run.is_plan, run.is_plan ? "yes" : ""},
                  TextCell(run.note)});
  }
  return table;
}

}  // namespace tilesmith
