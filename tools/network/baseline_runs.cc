#include "tools/network/baseline_runs.h"

#include <fmt/format.h>

namespace tilesmith {
namespace {

Cell GainCell(double ratio) { return {ratio - 1, fmt::format("{:+.1f}%", (ratio - 1) * 100)}; }

}  // namespace

std::vector<BaselineRun> RunBaselines(const PlanRuns& where, const Plan& plan,
                                      const std::vector<PlannedBaseline>& baselines, double seconds) {
  std::vector<const Plan*> plans = {&plan};
  for (const PlannedBaseline& baseline : baselines)
    if (baseline.plan) plans.push_back(&*baseline.plan);
  DuelRounds rounds;
  if (plans.size() > 1) rounds = ComparePlans(where, plans, seconds, plan.placement).rounds;
  std::vector<BaselineRun> runs;
  size_t contestant = 0;
  for (const PlannedBaseline& baseline : baselines) {
    runs.push_back({baseline, 0, {}});
    if (!baseline.plan) continue;
    ++contestant;
    runs.back().seconds = DuelSeconds(rounds, contestant);
    runs.back().ratio = RatioOf(rounds, 0, contestant);
  }
  return runs;
}

std::optional<Plan> FasterThanThePlan(const std::vector<BaselineRun>& runs) {
  const BaselineRun* fastest = nullptr;
  for (const BaselineRun& run : runs) {
    if (!run.baseline.plan || run.ratio.high >= 1) continue;
    if (!fastest || run.ratio.median < fastest->ratio.median) fastest = &run;
  }
  return fastest ? fastest->baseline.plan : std::nullopt;
}

Table BaselineTable(const std::vector<BaselineRun>& runs, const Plan& plan, double plan_seconds) {
  Table table("baselines", "baselines, executed in turns with the plan (95% interval of its gain)",
              {{"baseline", "baseline"},
               {"predicted_seconds", "predicted ms"},
               {"measured_seconds", "measured ms"},
               {"gain", "plan's gain"},
               {"gain_low", "from"},
               {"gain_high", "to"},
               {"note", "note", 0}});
  for (const BaselineRun& run : runs) {
    const Cell name = TextCell(run.baseline.name), note = TextCell(run.baseline.note);
    if (run.baseline.plan) {
      table.AddRow({name, KnownMillisecondsCell(KnownPrediction(*run.baseline.plan)),
                    MillisecondsCell(run.seconds), GainCell(run.ratio.median), GainCell(run.ratio.low),
                    GainCell(run.ratio.high), note});
    } else {
      table.AddRow({name, NoCell(), NoCell(), NoCell(), NoCell(), NoCell(), note});
    }
  }
  table.AddRow({TextCell("the plan"), KnownMillisecondsCell(KnownPrediction(plan)),
                KnownMillisecondsCell(plan_seconds), NoCell(), NoCell(), NoCell(), TextCell("")});
  return table;
}

}  // namespace tilesmith
