#include "tuner/retiming.h"

#include <algorithm>

#include "tuner/layout_search.h"
#include "tuner/measure/estimator.h"
#include "tuner/records/record_key.h"

namespace tilesmith {

std::vector<Record> Contenders(const ConvWorkload& workload, const TrialBook& book, int top,
                               const std::set<std::string>& done) {
  std::vector<Record> contenders;
  std::set<std::string> chosen = done;
  const auto add = [&](const Record& record) {
    if (chosen.insert(ScheduleText(record)).second) contenders.push_back(record);
  };
  const Record* best = book.Best();
  if (best == nullptr) return contenders;
  for (const Record* record : book.Top(static_cast<size_t>(std::max(top, 1)))) add(*record);
  const double worth = WorthHavingSeconds(workload, best->seconds);
  for (const auto& [pair, record] : book.BestOfPairs()) {
    if (record->seconds <= worth) add(*record);
  }
  return contenders;
}

std::vector<Retimed> TimeAgain(const std::vector<Record>& contenders, int rounds, Measurer& measurer,
                               const std::function<bool()>& stopped) {
  std::vector<Retimed> all;
  all.reserve(contenders.size());
  for (const Record& record : contenders) all.push_back({record, {}});
  for (int round = 0; round < rounds; ++round) {
    std::vector<TrialResult> of_round;
    for (const Retimed& one : all) {
      if (one.result.status != TrialStatus::kOk) {
        of_round.push_back(one.result);
        continue;
      }
      if (stopped()) return all;
      of_round.push_back(measurer.Measure({one.record.template_name, one.record.config}));
    }
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].result.status != TrialStatus::kOk) continue;
      std::vector<double> samples = std::move(all[i].result.sample_seconds);
      samples.insert(samples.end(), of_round[i].sample_seconds.begin(), of_round[i].sample_seconds.end());
      all[i].result = std::move(of_round[i]);
      all[i].result.sample_seconds = std::move(samples);
      if (all[i].result.status == TrialStatus::kOk) {
        all[i].result.seconds = Estimate(all[i].result.sample_seconds);
      }
    }
  }
  return all;
}

}  // namespace tilesmith
