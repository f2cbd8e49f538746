// The user's database of earlier tunings.
#include "tuner/records/database.h"

#include "tests/fuzz/targets/record_uses.h"
#include "tests/fuzz/targets/targets.h"
#include "tuner/records/log.h"

namespace tilesmith::fuzz {
namespace {

void Run(const std::string& input) {
  const InputFile file(input);
  TuningDatabase database(file.path());
  const std::vector<Record> records = ReadLog(file.path()).records;
  for (const Record& record : records) {
    const std::vector<Record> known = database.Find(record.workload, record.target, record.conditions);
    TrialsBehind(known);
    DatabaseFileName(record.target);
  }
  database.Add(records, 16);
}

}  // namespace

FuzzTarget DatabaseTarget() {
  return {.name = "database",
          .reads = "the database of earlier tunings: read, asked, added to",
          .run = Run,
          .mutate = MutateJsonLines,
          .words = RecordWords(),
          .short_runs = 300};
}

}  // namespace tilesmith::fuzz
