#include "tools/network/prediction_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "layouts/base/some_names.h"
#include "tools/doctor/disturbance.h"

namespace tilesmith {
namespace {

constexpr double kHeavyShare = 0.02, kAllowedGap = 0.15;
constexpr size_t kNamesShown = 3;

// How far `measured` is from what was expected; "-" where nothing was.
Cell GapCell(double measured, double expected) {
  if (expected <= 0 || measured <= 0) return NoCell();
  return ChangeCell(measured / expected - 1);
}

}  // namespace

Table RoundsTable(const RefinedPlan& refined) {
  Table table(
      "rounds",
      "plans run: solutions, each with what was learned before, and baselines; measured ms are of the round "
      "that a plan came in, the choice is made by turns (its time / the chosen plan's)",
      {{"name", "plan"},
       {"predicted_seconds", "predicted ms"},
       {"measured_seconds", "measured ms"},
       {"gap", "gap"},
       {"bytes", "MiB", 2},
       {"ratio", "by turns"},
       {"chosen", "chosen"},
       {"changed_nodes", "changed"},
       {"changed", "nodes", 2},
       {"disturbed_share", "disturbed"},
       {"note", "note", 1}});
  for (size_t i = 0; i < refined.rounds.size(); ++i) {
    const LoopRound& round = refined.rounds[i];
    const bool chosen = i == refined.round;
    table.AddRow({TextCell(round.name),
                  KnownMillisecondsCell(round.predicted_seconds),
                  KnownMillisecondsCell(round.measured_seconds),
                  GapCell(round.measured_seconds, round.predicted_seconds),
                  round.bytes > 0 ? MebibytesCell(round.bytes) : NoCell(),  // it was made ready
                  round.ratio > 0 ? RatioCell(round.ratio) : NoCell(),
                  {chosen, chosen ? "yes" : ""},
                  CountCell(static_cast<int64_t>(round.changed.size())),
                  TextCell(SomeNames(round.changed, kNamesShown)),
                  DisturbedCell(round.disturbed_share),
                  TextCell(round.note)});
  }
  return table;
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
                    MillisecondsCell(run.seconds), ChangeCell(run.ratio.median - 1),
                    ChangeCell(run.ratio.low - 1), ChangeCell(run.ratio.high - 1), note});
    } else {
      table.AddRow({name, NoCell(), NoCell(), NoCell(), NoCell(), NoCell(), note});
    }
  }
  table.AddRow({TextCell("the plan"), KnownMillisecondsCell(KnownPrediction(plan)),
                KnownMillisecondsCell(baselines.plan_seconds), NoCell(), NoCell(), NoCell(), TextCell("")});
  return table;
}

Table DifferencesTable(const std::vector<DifferencePart>& parts) {
  Table table("differences", "where the time goes, against what each kernel takes by itself",
              {{"part", "part"},
               {"steps", "steps"},
               {"stand_alone_seconds", "alone ms"},
               {"measured_seconds", "in context ms"},
               {"difference_seconds", "difference ms"}});
  for (const DifferencePart& part : parts) {
    table.AddRow({TextCell(part.name), CountCell(part.steps),
                  part.known ? MillisecondsCell(part.stand_alone_seconds) : NoCell(),
                  MillisecondsCell(part.seconds),
                  part.known ? MillisecondsCell(part.seconds - part.stand_alone_seconds) : NoCell()});
  }
  return table;
}

HeavySteps FindHeavySteps(const std::vector<StepDifference>& steps, const PlanMeasurement& measurement) {
  std::vector<Column> columns = {{"node", "node"},
                                 {"layouts", "layouts"},
                                 {"stand_alone_seconds", "alone ms"},
                                 {"context", "in context"},
                                 {"cause", "cause"},
                                 {"predicted_seconds", "predicted ms"},
                                 {"measured_seconds", "measured ms"},
                                 {"ratio", "ratio"}};
  const bool has_regions = std::ranges::any_of(
      steps, [](const StepDifference& difference) { return difference.matched.step.region.number > 0; });
  if (has_regions) columns.push_back({"region", "region", 0});
  HeavySteps heavy{
      .table = Table("nodes",
                     "nodes above 2% of the run, their measured ms with its threads and barriers shared out",
                     std::move(columns))};
  const double scale = ShareScale(measurement);
  for (const StepDifference& difference : steps) {
    const StepProfile& step = difference.matched.step;
    const double measured = step.seconds * scale, predicted = difference.matched.predicted_seconds;
    if (measured <= kHeavyShare * measurement.seconds) continue;
    ++heavy.count;
    if (predicted > 0 && std::abs(measured / predicted - 1) <= kAllowedGap) ++heavy.predicted_well;
    std::vector<Cell> cells = {TextCell(step.name),
                               TextCell(step.layouts),
                               KnownMillisecondsCell(difference.matched.stand_alone_seconds),
                               GapCell(measured, difference.matched.stand_alone_seconds),
                               TextCell(std::string(CauseName(difference.cause))),
                               MillisecondsCell(predicted),
                               MillisecondsCell(measured),
                               predicted > 0 ? RatioCell(measured / predicted) : NoCell()};
    if (has_regions) cells.push_back(step.region.number > 0 ? CountCell(step.region.number) : Cell());
    heavy.table.AddRow(std::move(cells));
  }
  return heavy;
}

void AddRegions(Report& report, const Plan& plan, const std::string& prefix) {
  if (plan.regions.empty()) return;
  const auto count = std::ssize(plan.regions);
  const auto nodes = std::ranges::count_if(plan.nodes, [](const NodePlan& node) { return node.region > 0; });
  report.Fact(prefix + "regions", prefix.empty() ? "regions" : "  regions",
              {int64_t{count}, fmt::format("{} of {} nodes", count, nodes)});
}

void AddHashes(Report& details, const std::string& graph_hash, const std::string& plan_hash) {
  details.Fact("graph_hash", "", TextCell(graph_hash));
  details.Fact("plan_hash", "", TextCell(plan_hash));
}
void AddHashes(Report& details, const Plan& plan) { AddHashes(details, plan.graph_hash, PlanHash(plan)); }

void AddPlacement(Report& report, const std::string& prefix, const CorePlacement& seen,
                  const CorePlacement& predicted_at) {
  if (!seen.is_known()) return;
  const bool moved = predicted_at.is_known() && !AreAlike(seen, predicted_at);
  const auto cell = [&](double seconds, double predicted) {
    return Cell{seconds, moved ? fmt::format("{:.2f} (predicted at {:.2f})", seconds * 1e6, predicted * 1e6)
                               : fmt::format("{:.2f}", seconds * 1e6)};
  };
  report.Fact(prefix + "barrier_seconds", "  barriers us",
              cell(seen.barrier_seconds, predicted_at.barrier_seconds));
  report.Fact(prefix + "arithmetic_seconds", "  arithmetic us",
              cell(seen.arithmetic_seconds, predicted_at.arithmetic_seconds));
}

}  // namespace tilesmith
