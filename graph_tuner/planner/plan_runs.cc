#include "graph_tuner/planner/plan_runs.h"

#include <algorithm>
#include <cmath>

#include "layouts/measure/clock.h"
#include "layouts/measure/quantile.h"

namespace tilesmith {
namespace {

constexpr int kMinTurns = 3, kMaxTurns = 11;
constexpr int kMinInAll = 12;                          // turns of all plans: of few plans each has more
constexpr size_t kMinRuns = 1, kMaxProfiledRuns = 50;  // in a turn
constexpr int kMinDuelRounds = 4;                      // of a duel

// What one plan showed in one turn.
struct Turn {
  double seconds = 0;
  std::vector<StepProfile> profile;
};

// The quantile of each step's seconds in several profiles.
std::vector<StepProfile> StepQuantiles(const std::vector<std::vector<StepProfile>>& profiles,
                                       double fraction) {
  std::vector<StepProfile> quantiles = profiles.front();
  for (size_t step = 0; step < quantiles.size(); ++step) {
    std::vector<double> seconds;
    seconds.reserve(profiles.size());
    for (const std::vector<StepProfile>& profile : profiles) seconds.push_back(profile[step].seconds);
    quantiles[step].seconds = Quantile(std::move(seconds), fraction);
  }
  return quantiles;
}

Turn TakeTurn(const PlanRuns& where, NetworkRun& run, double seconds, PlacementRange& seen) {
  const auto placement = [&] {
    where.limit.ThrowIfOver();
    return SeePlacement(where.machine->threads());
  };
  if (where.between) where.between();
  run.Run();
  const double begin = NowSeconds();
  const auto plain = TakePlacedSamples(
      placement, [&] { return SecondsOf([&] { run.RunAgain(); }); },
      [&](size_t taken) { return taken < kMinRuns || NowSeconds() - begin < seconds / 2; });
  Turn turn{Quantile(ComparableSamples(plain, {}, seen), 0.5), {}};
  const double profiled = std::clamp(seconds / 2 / turn.seconds, static_cast<double>(kMinRuns),
                                     static_cast<double>(kMaxProfiledRuns));
  const auto profiles = TakePlacedSamples(
      placement, [&] { return run.Profile(1); },
      [&](size_t taken) { return taken < static_cast<size_t>(profiled); });
  turn.profile = StepQuantiles(ComparableSamples(profiles, {}, seen), 0.25);
  return turn;
}

// `rounds` is indexed [round][plan].
PlanMeasurement MedianOf(const std::vector<std::vector<Turn>>& rounds, size_t plan) {
  PlanMeasurement median;
  std::vector<std::vector<StepProfile>> profiles;
  profiles.reserve(rounds.size());
  median.turns.reserve(rounds.size());
  for (const std::vector<Turn>& round : rounds) {
    median.turns.push_back(round[plan].seconds);
    profiles.push_back(round[plan].profile);
  }
  median.seconds = Quantile(median.turns, 0.5);
  median.steps = StepQuantiles(profiles, 0.5);
  return median;
}

std::vector<NetworkRun> PrepareRuns(const PlanRuns& where, const std::vector<GraphPlan>& plans) {
  std::vector<NetworkRun> runs;
  runs.reserve(plans.size());
  for (const auto& [graph, plan] : plans) {
    where.limit.ThrowIfOver();
    runs.emplace_back(*graph, *plan, where.machine, SeededInputs(*graph, 1), where.limit.stop);
  }
  return runs;
}

// The options of the next duel, of `left` to come.
DuelOptions OptionsOf(const PlanRuns& where, double seconds, const CorePlacement& preferred, int left,
                      size_t plans) {
  constexpr double kLeastBlockSeconds = 5e-3;
  DuelOptions options = NetworkDuel(seconds, where.machine->threads(), preferred);
  options.min_rounds = kMinDuelRounds;
  options.stop = where.limit.stop;
  options.end = where.hurry_end;
  const double share = std::max(0.0, where.hurry_end - NowSeconds()) / left;
  if (std::isinf(share)) return options;
  options.seconds = std::min(seconds, share);
  const double turn = options.seconds / kMinDuelRounds / static_cast<double>(plans);
  options.block_seconds = std::clamp(turn, kLeastBlockSeconds, options.block_seconds);
  return options;
}

std::vector<GraphPlan> OnGraph(const Graph& graph, const std::vector<const Plan*>& plans) {
  std::vector<GraphPlan> on_graph;
  on_graph.reserve(plans.size());
  for (const Plan* plan : plans) on_graph.push_back({&graph, plan});
  return on_graph;
}

}  // namespace

std::vector<PlanMeasurement> MeasurePlans(const PlanRuns& where, const std::vector<const Plan*>& plans,
                                          double seconds) {
  std::vector<NetworkRun> runs = PrepareRuns(where, OnGraph(where.graph, plans));
  double slowest = 0;
  for (NetworkRun& run : runs) {
    where.limit.ThrowIfOver();
    slowest = std::max(slowest, run.Time(1).median);
  }
  const double least_turn = 2 * static_cast<double>(kMinRuns) * slowest;
  const int least_turns = std::clamp(kMinInAll / static_cast<int>(plans.size()), kMinTurns, kMaxTurns);
  const int turns = static_cast<int>(
      std::clamp(seconds / least_turn, static_cast<double>(least_turns), static_cast<double>(kMaxTurns)));
  const auto is_over = [&](size_t taken, int times) { return static_cast<int>(taken) >= times * turns; };
  const auto turn = [&](size_t plan, PlacementRange& seen) {
    return TakeTurn(where, runs[plan], seconds / turns, seen);
  };
  const Rounds<Turn> comparable = Comparable(
      TakeRounds<Turn>(runs.size(), {}, static_cast<size_t>(turns) / 2 + 1, is_over, turn), {}, kMinTurns);
  const CorePlacement seen = MedianPlacement(comparable.placements);
  std::vector<PlanMeasurement> measurements;
  for (size_t plan = 0; plan < plans.size(); ++plan) {
    measurements.push_back(MedianOf(comparable.rounds, plan));
    measurements.back().placement = seen;
    Executor& executor = runs[plan].executor();
    measurements.back().bytes = static_cast<int64_t>(executor.PackedWeightBytes() + executor.ArenaBytes());
  }
  return measurements;
}

Duel ComparePlans(const PlanRuns& where, const std::vector<const Plan*>& plans, double seconds,
                  const CorePlacement& preferred) {
  return ComparePlans(where, OnGraph(where.graph, plans), seconds, preferred);
}

Duel ComparePlans(const PlanRuns& where, const std::vector<GraphPlan>& plans, double seconds,
                  const CorePlacement& preferred) {
  Duel duel;
  for (int instance = 0; instance < kPlanDuels; ++instance) {
    if (instance > 0 && NowSeconds() >= where.hurry_end) break;
    if (where.between) where.between();
    std::vector<NetworkRun> runs = PrepareRuns(where, plans);
    std::vector<Contestant> contestants;
    contestants.reserve(runs.size());
    for (NetworkRun& run : runs) {
      contestants.push_back({"",
                             [&where, &run] {
                               run.Run();
                               where.limit.ThrowIfOver();
                             },
                             {}});
    }
    const DuelOptions options = OptionsOf(where, seconds * static_cast<double>(plans.size()), preferred,
                                          kPlanDuels - instance, plans.size());
    const Duel more = RunDuel(contestants, options);
    duel.rounds.insert(duel.rounds.end(), more.rounds.begin(), more.rounds.end());
    duel.placements.insert(duel.placements.end(), more.placements.begin(), more.placements.end());
  }
  return Comparable(duel, preferred, kMinDuelRounds);
}

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

}  // namespace tilesmith
