#include "tools/network/baseline_runs.h"

#include <fmt/format.h>

#include "tools/network/plan_runs.h"

namespace tilesmith {
namespace {

Cell GainCell(double ratio) { return {ratio - 1, fmt::format("{:+.1f}%", (ratio - 1) * 100)}; }

}  // namespace

std::vector<BaselineRun> RunBaselines(const Graph& graph, const Plan& plan, const Machine& machine,
                                      const std::vector<PlannedBaseline>& baselines,
                                      const BaselineOptions& options) {
  NetworkRun plan_run(graph, plan, machine, RandomInputs(graph, 1));
  std::vector<BaselineRun> runs;
  for (const PlannedBaseline& baseline : baselines) {
    BaselineRun run{baseline, 0, {}};
    if (baseline.plan) {
      if (options.begin) options.begin(baseline.name);
      NetworkRun baseline_run(graph, *baseline.plan, machine, RandomInputs(graph, 1));
      const DuelRounds rounds = ComparePlans(plan_run, baseline_run, options.seconds);
      run.seconds = DuelSeconds(rounds, 1);
      run.ratio = RatioOf(rounds, 0, 1);
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

Table BaselineTable(const std::vector<BaselineRun>& runs, const Plan& plan, double plan_seconds) {
  Table table("baselines", "baselines, executed in turns with the plan (95% interval of its gain)",
              {{"baseline", "baseline"},
               {"predicted_seconds", "predicted ms"},
               {"measured_seconds", "measured ms"},
               {"gain", "plan's gain"},
               {"gain_low", "from"},
               {"gain_high", "to"},
               {"note", "note"}});
  for (const BaselineRun& run : runs) {
    const Cell name = TextCell(run.baseline.name), note = TextCell(run.baseline.note);
    if (run.baseline.plan) {
      table.AddRow({name, MillisecondsCell(run.baseline.plan->predicted_seconds),
                    MillisecondsCell(run.seconds), GainCell(run.ratio.median), GainCell(run.ratio.low),
                    GainCell(run.ratio.high), note});
    } else {
      table.AddRow({name, NoCell(), NoCell(), NoCell(), NoCell(), NoCell(), note});
    }
  }
  table.AddRow({TextCell("the plan"), MillisecondsCell(plan.predicted_seconds),
                MillisecondsCell(plan_seconds), NoCell(), NoCell(), NoCell(), TextCell("")});
  return table;
}

}  // namespace tilesmith
