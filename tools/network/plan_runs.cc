#include "tools/network/plan_runs.h"

#include <algorithm>

#include "layouts/base/core_distance.h"
#include "layouts/base/quantile.h"

namespace tilesmith {
namespace {

constexpr int kLeastTurns = 3, kMostTurns = 11, kPatience = 2;
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

PlanMeasurement MedianOf(const Turns& turns) {
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
                                          const Machine& machine, double seconds,
                                          double preferred_barrier_seconds) {
  std::vector<NetworkRun> runs = PrepareRuns(graph, plans, machine);
  double slowest = 0;
  for (NetworkRun& run : runs) slowest = std::max(slowest, run.Time(1, 0).median);
  const double least_turn = 2 * kLeastRuns * slowest;
  const int turns = int(std::clamp(seconds / least_turn, double(kLeastTurns), double(kMostTurns)));
  std::vector<Turns> taken(runs.size());
  std::vector<CoreDistance> rounds;
  const auto are_alike = [&] {
    return EnoughAreAlike(rounds, preferred_barrier_seconds, size_t(turns) / 2 + 1);
  };
  while (int(rounds.size()) < turns || (!are_alike() && int(rounds.size()) < kPatience * turns)) {
    CoreDistance distance;
    for (size_t i = 0; i < runs.size(); ++i) {
      distance.Include(BarrierSeconds(machine.threads));
      const size_t next = (rounds.size() + i) % runs.size();
      TakeTurn(runs[next], seconds / turns, taken[next]);
    }
    distance.Include(BarrierSeconds(machine.threads));
    rounds.push_back(distance);
  }
  const std::vector<size_t> comparable = ComparableRounds(rounds, preferred_barrier_seconds, kLeastTurns);
  std::vector<PlanMeasurement> measurements;
  for (const Turns& turns_of_one : taken) {
    PlanMeasurement& measurement = measurements.emplace_back(
        MedianOf({Selected(turns_of_one.seconds, comparable), Selected(turns_of_one.profiles, comparable)}));
    measurement.barrier_seconds = MedianBarrierSeconds(Selected(rounds, comparable));
  }
  return measurements;
}

Duel ComparePlans(const Graph& graph, const std::vector<const Plan*>& plans, const Machine& machine,
                  double seconds, double preferred_barrier_seconds) {
  const double seconds_each = seconds * double(plans.size()) / kInstances;
  Duel duel;
  for (int instance = 0; instance < kInstances; ++instance) {
    std::vector<NetworkRun> runs = PrepareRuns(graph, plans, machine);
    std::vector<Contestant> contestants;
    for (NetworkRun& run : runs) contestants.push_back({"", [&run] { run.Run(); }, {}});
    const Duel more = RunDuel(contestants, {.seconds = seconds_each,
                                            .cold = false,
                                            .min_rounds = kLeastRounds,
                                            .threads = machine.threads,
                                            .preferred_barrier_seconds = preferred_barrier_seconds,
                                            .block_seconds = kBlockSeconds});
    duel.rounds.insert(duel.rounds.end(), more.rounds.begin(), more.rounds.end());
    duel.distances.insert(duel.distances.end(), more.distances.begin(), more.distances.end());
  }
  return Comparable(duel, preferred_barrier_seconds, kLeastRounds);
}

}  // namespace tilesmith
