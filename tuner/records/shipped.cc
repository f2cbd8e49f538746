#include "tuner/records/shipped.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "tuner/records/record_key.h"
#include "tuner/records/record_line.h"

namespace tilesmith {

const std::vector<Record>& ShippedRecords() {
  static const std::vector<Record> records = [] {
    std::vector<Record> read;
    RecordLineReader reader;
    for (const ShippedLog& log : ShippedLogs()) {
      for (size_t begin = 0; begin < log.text.size();) {
        const size_t end = std::min(log.text.find('\n', begin), log.text.size());
        Record record;
        if (reader.Read(log.text.substr(begin, end - begin), record).empty())
          read.push_back(std::move(record));
        begin = end + 1;
      }
    }
    return read;
  }();
  return records;
}

std::vector<Record> Suggestions(std::span<const Record> shipped, const ConvWorkload& workload,
                                const Target& cpu, int threads, size_t most) {
  std::vector<const Record*> fitting;
  for (const Record& record : shipped) {
    const bool worked = record.status == TrialStatus::kOk && record.target.isa == cpu.isa;
    if (worked && record.workload == workload) fitting.push_back(&record);
  }
  const auto rank = [&](const Record* record) {
    const bool other_machine = !SameMachine(record->target, cpu);
    return std::tuple(other_machine, record->conditions.threads != threads, record->early_stopped,
                      record->seconds);
  };
  std::ranges::stable_sort(fitting, {}, rank);
  std::vector<Record> suggestions;
  std::set<std::string> seen;
  for (const Record* record : fitting) {
    if (suggestions.size() == most) break;
    if (seen.insert(ScheduleText(*record)).second) suggestions.push_back(*record);
  }
  return suggestions;
}

}  // namespace tilesmith
