#include "tuner/measure/pooled_trials.h"

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "tuner/measure/estimator.h"
#include "tuner/measure/run_trials.h"

namespace tilesmith {

TrialResult Pooled(const TrialResult& before, TrialResult again) {
  again.sample_seconds.insert(again.sample_seconds.begin(), before.sample_seconds.begin(),
                              before.sample_seconds.end());
  if (again.status == TrialStatus::kOk) again.seconds = Estimate(again.sample_seconds);
  return again;
}

namespace {

class Together {
 public:
  explicit Together(Measurer& measurer) : measurer_(measurer) { measurer_.KeepTogether(true); }
  ~Together() { measurer_.KeepTogether(false); }
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;

 private:
  Measurer& measurer_;
};

}  // namespace

std::vector<TrialResult> MeasureInTurns(std::span<const TrialRequest> requests, int rounds,
                                        Measurer& measurer, const std::function<bool()>& stopped) {
  const Together together(measurer);
  std::vector<TrialResult> results(requests.size());
  std::set<std::string> machines;
  for (int round = 0, restarts_left = 3; round < rounds; ++round) {
    std::vector<TrialResult> after = results;
    std::vector<size_t> asked;
    bool is_stopped = false;
    const auto next = [&, i = size_t{0}]() mutable -> std::optional<TrialRequest> {
      while (i < requests.size() && results[i].status != TrialStatus::kOk) ++i;
      if (i == requests.size() || is_stopped) return std::nullopt;
      is_stopped = stopped();
      if (is_stopped) return std::nullopt;
      asked.push_back(i);
      return requests[i++];
    };
    RunTrials(measurer, next, [&](size_t index, TrialResult result) {
      const size_t i = asked[index];
      if (result.status == TrialStatus::kOk) machines.insert(result.worker);
      after[i] = Pooled(results[i], std::move(result));
    });
    if (is_stopped) return results;
    if (machines.size() > 1 && restarts_left-- > 0) {
      results.assign(requests.size(), {});
      machines.clear();
      round = -1;
      continue;
    }
    results = std::move(after);
  }
  return results;
}

}  // namespace tilesmith
