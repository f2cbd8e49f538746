// Tables of measured results as CSV files that say where they come from, as those in tools/results do.
#pragma once

#include <string>
#include <string_view>

#include "tools/cli/report.h"
#include "tuner/records/record.h"

namespace tilesmith {

// "AMD EPYC, avx512, 32 KiB L1d, 1024 KiB L2, 32768 KiB L3, 2 cores".
std::string MachineText(const Target& target);

// What is in front of a table's CSV: "# key: value" for title, machine, date, commit, and the command, which
// is this process's own. `machine` and `title` are of one line.
std::string ResultsText(const Table& table, std::string_view title, std::string_view machine);
// ResultsText as a file. Throws as WriteTextFile does.
void WriteResults(const std::string& path, const Table& table, std::string_view title,
                  std::string_view machine);

// Where a report's results come from, as details of it: version, commit, date and time, command, machine.
void AddOrigin(Report& details, const Target& cpu);

// The report as Print has it, with its origin in JSON.
void PrintResults(Report& report, bool json, const Target& cpu);

// The command that this process was started with, however its binary was found, without a URL's password; or
// that it works for, once it was told.
std::string OwnCommand();
void WorkForCommand(std::string command);

// What was built: "1a2b3c4", with "-dirty" where files had been changed since; "unknown" outside of a git
// tree. In a file that tools/cli/commit.cmake writes.
std::string_view CommitOfBuild();

// Version and commit, the instructions that are used here, and the libraries in use: a line each. Throws as
// CappedCpu does.
std::string VersionText();

}  // namespace tilesmith
