// One line of a tuning log, by both of its readers, and what commands then ask of the record.
#include <nlohmann/json.hpp>

#include "templates/base/conv_template.h"
#include "tests/fuzz/targets/record_uses.h"
#include "tests/fuzz/targets/targets.h"
#include "tuner/records/json_fields.h"
#include "tuner/records/record_line.h"

namespace tilesmith::fuzz {
namespace {

void Run(const std::string& input) {
  RecordLineReader reader;
  Record fast, slow;
  const bool canonical = reader.ReadCanonical(input, fast);
  const std::string problem = ParseRecordLine(input, slow);
  if (canonical) Require(problem.empty(), "what ReadCanonical accepts is a record: " + problem);
  if (!problem.empty()) return;
  const std::string line = JsonLine(RecordToJson(slow));
  if (canonical) Require(JsonLine(RecordToJson(fast)) == line, "both readers give the same record");
  Record again;
  Require(ParseRecordLine(line, again).empty(), "a record's own line can be read");
  Require(JsonLine(RecordToJson(again)) == line, "and is the same record");
  UseRecord(slow);
}

}  // namespace

FuzzTarget LogLineTarget() {
  return {.name = "log_line",
          .reads = "a line of a tuning log, by both readers",
          .run = Run,
          .mutate = MutateJsonLines,
          .words = RecordWords(),
          .short_runs = 4000};
}

}  // namespace tilesmith::fuzz
