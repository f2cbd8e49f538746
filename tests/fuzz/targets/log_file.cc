// A tuning log as a file, and the commands that read whole logs.
#include <vector>

#include "tests/fuzz/targets/record_uses.h"
#include "tests/fuzz/targets/targets.h"
#include "tuner/records/log.h"
#include "tuner/records/log_scan.h"
#include "tuner/records/log_stats.h"
#include "tuner/records/record_groups.h"

namespace tilesmith::fuzz {
namespace {

void Run(const std::string& input) {
  const InputFile file(input);
  LogMerger merger;
  std::vector<Record> records;
  ScanLog(file.path(), [&](LogLine& line) {
    if (!line.problem.empty()) return;
    merger.Add(line.text, line.record);
    records.push_back(std::move(line.record));
  });
  Require(merger.Sorted().size() + static_cast<size_t>(merger.duplicates()) == records.size(),
          "merging keeps each record or counts it as a duplicate");
  StatsOf(records);
  SpanOf(records);
  CountTargets(records);
  if (!records.empty()) BestRecords(records, records[0].target);
  Distill(records);
}

}  // namespace

FuzzTarget LogFileTarget() {
  return {.name = "log_file",
          .reads = "a tuning log: scanned, merged, summed up",
          .run = Run,
          .mutate = MutateJsonLines,
          .words = RecordWords(),
          .short_runs = 500};
}

}  // namespace tilesmith::fuzz
