// Tuning logs as commands read them: what is wrong with a log is said once, on stderr.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/machine.h"
#include "tuner/records/record.h"

namespace tilesmith {

// Prints a line for the first few skipped lines. Throws Error(kEnvironment) when the file cannot be read, and
// Error(kUsage) when it has lines but no record at all: then it is no tuning log.
std::vector<Record> LoadRecords(const std::string& path);

// Those of several logs, one after the other.
std::vector<Record> LoadRecords(const std::vector<std::string>& paths);

// Drops the successful records of this machine whose config today's templates do not build, as an older
// version's or an edited one may be, and says so in a line that names the log.
void DropUseless(std::vector<Record>& records, const std::string& path, const Target& cpu);
std::vector<Record> LoadUsableRecords(const std::string& path, const Target& cpu);

// What is done with a log that has something in it already.
enum class ExistingLog { kRefuse, kResume, kOverwrite };
// Of a log that is about to be written: what it holds, where it is gone on with. Throws Error(kUsage) where
// it is to be refused, and where it is no log.
std::vector<Record> KnownRecords(const std::string& path, ExistingLog existing, const Target& cpu);

// Makes records of other machines or thread counts count as this one's, times included.
void BelieveForeignRecords(std::vector<Record>& records, const DevicePtr& machine);

// The log of the trials behind a plan or a measured space: "a.plan.jsonl" -> "a.plan.jsonl.log.jsonl".
std::string LogPathBeside(const std::string& path);
// Where measured costs are kept beside a log: "a.jsonl" -> "a.costs.jsonl".
std::string CostsPathFor(const std::string& log_path);

}  // namespace tilesmith
