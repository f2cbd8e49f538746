#include "tools/network/plan_runs.h"

#include <algorithm>

#include "layouts/base/quantile.h"

namespace tilesmith {
namespace {

constexpr int kLeastRuns = 5, kMostProfiledRuns = 200;
constexpr int kLeastRounds = 10;  // enough for an interval that is not simply the range

}  // namespace

PlanMeasurement MeasurePlan(NetworkRun& run, double seconds) {
  const double part = seconds / 3;
  std::vector<double> samples = run.Time(kLeastRuns, part).seconds;
  const int profiled =
      int(std::clamp(part / Quantile(samples, 0.5), double(kLeastRuns), double(kMostProfiledRuns)));
  PlanMeasurement measurement;
  measurement.steps = run.Profile(profiled);
  const std::vector<double> more = run.Time(kLeastRuns, part).seconds;
  samples.insert(samples.end(), more.begin(), more.end());
  measurement.seconds = Quantile(std::move(samples), 0.5);
  return measurement;
}

DuelRounds ComparePlans(NetworkRun& a, NetworkRun& b, double seconds) {
  const Contestant contestants[] = {{"a", [&] { a.Run(); }, {}}, {"b", [&] { b.Run(); }, {}}};
  return RunDuel(contestants, {.seconds = seconds, .cold = false, .min_rounds = kLeastRounds});
}

}  // namespace tilesmith
