#include "tuner/retiming.h"

#include <algorithm>

#include "tuner/layout_search.h"
#include "tuner/measure/pooled_trials.h"
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
  std::vector<TrialRequest> requests;
  requests.reserve(contenders.size());
  for (const Record& record : contenders) requests.push_back({record.template_name, record.config});
  std::vector<TrialResult> results = MeasureInTurns(requests, rounds, measurer, stopped);
  std::vector<Retimed> all;
  all.reserve(contenders.size());
  for (size_t i = 0; i < contenders.size(); ++i) all.push_back({contenders[i], std::move(results[i])});
  return all;
}

}  // namespace tilesmith
