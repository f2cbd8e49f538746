#include "graph_tuner/explain/layout_tries.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>

#include "graph_tuner/explain/node_choices.h"
#include "tuner/records/record_groups.h"
#include "tuner/tune.h"

namespace tilesmith {
namespace {

void CountTemplates(const ConvWorkload& workload, const Layout& layout, const LogReader& reader,
                    LayoutTries& tries) {
  std::set<LayoutPair> pairs;
  for (const ConvTemplate* conv_template : TemplatesToTune(workload, reader.cpu, reader.accuracy)) {
    const Config preset = conv_template->Default(workload, reader.cpu);
    bool has = HasLayout(workload, conv_template->Layouts(workload, preset), layout);
    const ConfigSpace space = conv_template->Space(workload, reader.cpu);
    for (const LayoutPair& pair : conv_template->LayoutPairs(workload, space)) {
      pairs.insert(pair);
      has = has || HasLayout(workload, pair, layout);
    }
    if (has) tries.templates.emplace_back(conv_template->Name());
  }
  tries.pairs = static_cast<int64_t>(pairs.size());
}

// Which record of a pair of layouts to believe is one question, which pair is the fastest another.
std::optional<Record> FastestCandidate(const std::vector<Record>& records,
                                       const std::function<bool(const Record&)>& counts) {
  std::map<LayoutPair, const Record*> candidates;
  for (const Record* record : StandingRecords(records)) {
    if (!counts(*record)) continue;
    const auto [known, added] = candidates.try_emplace(record->layouts, record);
    if (!added && IsBetterRecord(*record, *known->second)) known->second = record;
  }
  const auto order = [](const auto& entry) {
    return std::pair(entry.second->early_stopped, entry.second->seconds);
  };
  const auto fastest = std::ranges::min_element(candidates, {}, order);
  return fastest == candidates.end() ? std::nullopt : std::optional(*fastest->second);
}

}  // namespace

LayoutTries FindLayoutTries(const ConvWorkload& workload, const Layout& layout,
                            const std::vector<Record>& records, const LogReader& reader) {
  std::vector<Record> of_workload;
  std::ranges::copy_if(records, std::back_inserter(of_workload),
                       [&](const Record& record) { return record.workload == workload; });
  const auto is_here = [&](const Record& record) {
    return record.conditions.threads == reader.threads && SameMachine(record.target, reader.cpu);
  };
  LayoutTries tries;
  tries.cold_weights = std::ranges::any_of(of_workload, [&](const Record& record) {
    return is_here(record) && record.conditions.cold_weights && record.status == TrialStatus::kOk;
  });
  const auto counts = [&](const Record& record) {
    return is_here(record) && record.conditions.cold_weights == tries.cold_weights;
  };
  std::set<std::string> all_configs, configs;
  for (const Record& record : of_workload) {
    const bool has = HasLayout(workload, record.layouts, layout);
    if (counts(record)) all_configs.insert(ScheduleText(record));
    if (!has) continue;
    if (!counts(record)) {
      ++tries.ignored;
      continue;
    }
    ++tries.records;
    configs.insert(ScheduleText(record));
    if (record.status != TrialStatus::kOk)
      ++tries.failures[record.status];
    else if (!Accepts(reader.accuracy, record))
      ++tries.inaccurate;
  }
  tries.trials = static_cast<int64_t>(configs.size());
  tries.task_trials = static_cast<int64_t>(all_configs.size());
  tries.best = FastestCandidate(AcceptedRecords(reader.accuracy, of_workload), [&](const Record& record) {
    return counts(record) && HasLayout(workload, record.layouts, layout);
  });
  CountTemplates(workload, layout, reader, tries);
  return tries;
}

int64_t TrialsToCoverLayouts(const LayoutTries& tries) {
  // Half of a fresh task's trials may go to its layouts, and all that a resumed one is given beyond its share
  // of searching.
  return std::max(tries.task_trials, tries.pairs) + tries.pairs;
}

}  // namespace tilesmith
