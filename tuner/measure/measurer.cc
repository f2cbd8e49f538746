#include "tuner/measure/measurer.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "layouts/base/check.h"
#include "tuner/measure/estimator.h"
#include "tuner/records/record.h"

namespace tilesmith {

Record TrialRecord(const MeasureSession& session, const ConvTemplate& conv_template, const Config& config,
                   const TrialResult& result) {
  Record record;
  record.target = result.target;
  record.workload = session.workload;
  record.template_name = conv_template.Name();
  record.config = config;
  record.layouts = conv_template.Layouts(session.workload, config);
  record.conditions = session.conditions;
  record.status = result.status;
  record.detail = result.detail;
  record.sample_seconds = result.sample_seconds;
  record.seconds = result.seconds;
  record.error = result.error;
  record.statistic = kEstimatorName;
  record.early_stopped = result.early_stopped;
  record.seed = session.seed;
  record.time = UtcNow();
  return record;
}

void RunTrials(Measurer& measurer, const std::function<std::optional<TrialRequest>()>& next,
               const std::function<void(size_t index, TrialResult result)>& done) {
  const auto capacity = static_cast<size_t>(measurer.Capacity());
  std::map<Ticket, size_t> in_flight;  // the requests' numbers
  for (size_t submitted = 0;;) {
    while (in_flight.size() < capacity) {
      const std::optional<TrialRequest> request = next();
      if (!request) break;
      in_flight.emplace(measurer.Submit(*request), submitted++);
    }
    if (in_flight.empty()) return;
    auto [ticket, result] = measurer.Next();
    const auto found = in_flight.find(ticket);
    TILESMITH_CHECK(found != in_flight.end(), "the measurer answers trial {}, which nobody asked for",
                    ticket);
    const size_t index = found->second;
    in_flight.erase(found);
    done(index, std::move(result));
  }
}

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
