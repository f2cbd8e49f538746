#include "tools/network/baseline_runs.h"

#include <fmt/format.h>

namespace tilesmith {
namespace {

Cell GainCell(double ratio) { return ChangeCell(ratio - 1); }

}  // namespace

BaselineRuns RunBaselines(const PlanRuns& where, const Plan& plan,
                          const std::vector<PlannedBaseline>& baselines, double seconds) {
  std::vector<const Plan*> plans = {&plan};
  for (const PlannedBaseline& baseline : baselines)
    if (baseline.plan) plans.push_back(&*baseline.plan);
  DuelRounds rounds;
  if (plans.size() > 1) rounds = ComparePlans(where, plans, seconds, plan.placement).rounds;
  BaselineRuns beside;
  if (plans.size() > 1) beside.plan_seconds = DuelSeconds(rounds, 0);
  size_t contestant = 0;
  for (const PlannedBaseline& baseline : baselines) {
    BaselineRun& run = beside.runs.emplace_back(baseline);
    if (!baseline.plan) continue;
    ++contestant;
    run.seconds = DuelSeconds(rounds, contestant);
    run.ratio = RatioOf(rounds, 0, contestant);
  }
  return beside;
}

std::optional<Plan> FasterThanThePlan(const std::vector<BaselineRun>& runs) {
  const BaselineRun* fastest = nullptr;
  for (const BaselineRun& run : runs) {
    if (!run.baseline.plan || run.ratio.high >= 1) continue;
    if (!fastest || run.ratio.median < fastest->ratio.median) fastest = &run;
  }
  return fastest ? fastest->baseline.plan : std::nullopt;
}

Table BaselineTable(const BaselineRuns& baselines, const Plan& plan) {
  Table table("baselines",
              "baselines, executed in turns with the plan: all times are of these turns, the plan's above of "
              "others (95% interval of its gain)",
              {{"baseline", "baseline"},
               {"predicted_seconds", "predicted ms"},
               {"measured_seconds", "measured ms"},
               {"gain", "plan's gain"},
               {"gain_low", "from"},
               {"gain_high", "to"},
               {"note", "note", 0}});
  for (const BaselineRun& run : baselines.runs) {
    const Cell name = TextCell(run.baseline.name);
    const bool unsure = run.seconds > 0 && run.ratio.median < 1 && run.ratio.high >= 1;
    const Cell note =
        TextCell(fmt::format("{}{}{}", run.baseline.note, unsure && !run.baseline.note.empty() ? "; " : "",
                             unsure ? "faster within noise only" : ""));
    if (run.baseline.plan) {
      table.AddRow({name, KnownMillisecondsCell(KnownPrediction(*run.baseline.plan)),
                    MillisecondsCell(run.seconds), GainCell(run.ratio.median), GainCell(run.ratio.low),
                    GainCell(run.ratio.high), note});
    } else {
      table.AddRow({name, NoCell(), NoCell(), NoCell(), NoCell(), NoCell(), note});
    }
  }
  table.AddRow({TextCell("the plan"), KnownMillisecondsCell(KnownPrediction(plan)),
                KnownMillisecondsCell(baselines.plan_seconds), NoCell(), NoCell(), NoCell(), TextCell("")});
  return table;
}

}  // namespace tilesmith
