#include "tools/network/plan_runs.h"

#include <algorithm>

#include "layouts/base/quantile.h"

namespace tilesmith {
namespace {

constexpr int kLeastTurns = 3, kMostTurns = 11;
constexpr int kLeastRuns = 2, kMostProfiledRuns = 50;  // in a turn
constexpr int kInstances = 3, kLeastRounds = 4;        // of a duel, and of each of them

// Long enough for a plan's weights and tensors to be where they stay while it alone runs: several plans
// together are more than the caches hold.
constexpr double kBlockSeconds = 30e-3;

// What one plan showed, turn by turn.
struct Turns {
  std::vector<double> seconds;
  std::vector<std::vector<StepProfile>> profiles;
};

void TakeTurn(NetworkRun& run, double seconds, Turns& turns) {
  const double plain = run.Time(kLeastRuns, seconds / 2).median;
  const double profiled = std::clamp(seconds / 2 / plain, double(kLeastRuns), double(kMostProfiledRuns));
  turns.seconds.push_back(plain);
  turns.profiles.push_back(run.Profile(int(profiled)));
}

PlanMeasurement MedianOf(Turns turns) {
  PlanMeasurement median{Quantile(turns.seconds, 0.5), turns.profiles.front(), turns.seconds};
  for (size_t step = 0; step < median.steps.size(); ++step) {
    std::vector<double> seconds;
    for (const std::vector<StepProfile>& profile : turns.profiles) seconds.push_back(profile[step].seconds);
    median.steps[step].seconds = Quantile(std::move(seconds), 0.5);
  }
  return median;
}

std::vector<NetworkRun> PrepareRuns(const Graph& graph, const std::vector<const Plan*>& plans,
                                    const Machine& machine) {
  std::vector<NetworkRun> runs;
  runs.reserve(plans.size());
  for (const Plan* plan : plans) runs.emplace_back(graph, *plan, machine, RandomInputs(graph, 1));
  return runs;
}

}  // namespace

std::vector<PlanMeasurement> MeasurePlans(const Graph& graph, const std::vector<const Plan*>& plans,
                                          const Machine& machine, double seconds) {
  std::vector<NetworkRun> runs = PrepareRuns(graph, plans, machine);
  double slowest = 0;
  for (NetworkRun& run : runs) slowest = std::max(slowest, run.Time(1, 0).median);
  const double least_turn = 2 * kLeastRuns * slowest;
  const int turns = int(std::clamp(seconds / least_turn, double(kLeastTurns), double(kMostTurns)));
  std::vector<Turns> taken(runs.size());
  for (int turn = 0; turn < turns; ++turn) {
    for (size_t i = 0; i < runs.size(); ++i) {
      const size_t next = (size_t(turn) + i) % runs.size();
      TakeTurn(runs[next], seconds / turns, taken[next]);
    }
  }
  std::vector<PlanMeasurement> measurements;
  for (Turns& one : taken) measurements.push_back(MedianOf(std::move(one)));
  return measurements;
}

DuelRounds ComparePlans(const Graph& graph, const std::vector<const Plan*>& plans, const Machine& machine,
                        double seconds) {
  const double seconds_each = seconds * double(plans.size()) / kInstances;
  DuelRounds rounds;
  for (int instance = 0; instance < kInstances; ++instance) {
    std::vector<NetworkRun> runs = PrepareRuns(graph, plans, machine);
    std::vector<Contestant> contestants;
    for (NetworkRun& run : runs) contestants.push_back({"", [&run] { run.Run(); }, {}});
    const DuelRounds more = RunDuel(
        contestants,
        {.seconds = seconds_each, .cold = false, .min_rounds = kLeastRounds, .block_seconds = kBlockSeconds});
    rounds.insert(rounds.end(), more.begin(), more.end());
  }
  return rounds;
}

}  // namespace tilesmith
