#include "tools/cli/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "layouts/base/error.h"
#include "tools/cli/output_file.h"
#include "tools/cli/streams.h"
#include "tuner/records/log.h"
#include "tuner/records/still_builds.h"

namespace tilesmith {

std::vector<Record> LoadRecords(const std::string& path) {
  LogContents contents = ReadLog(path);
  const std::vector<LogProblem>& problems = contents.problems;
  if (contents.records.empty() && !problems.empty()) {
    throw Error(ErrorCode::kUsage, fmt::format("{}:{}: {} (no line of this file is a tuning record)", path,
                                               problems[0].line, problems[0].message));
  }
  constexpr size_t kShown = 3;
  for (size_t i = 0; i < std::min(problems.size(), kShown); ++i) {
    PrintNote(fmt::format("{}:{}: skipped: {}\n", path, problems[i].line, problems[i].message));
  }
  if (problems.size() > kShown) {
    PrintNote(fmt::format("{}: {} more lines skipped\n", path, problems.size() - kShown));
  }
  return std::move(contents.records);
}

std::vector<Record> LoadRecords(const std::vector<std::string>& paths) {
  std::vector<Record> records;
  for (const std::string& path : paths) {
    std::vector<Record> more = LoadRecords(path);
    if (records.empty()) {
      records = std::move(more);
    } else {
      std::move(more.begin(), more.end(), std::back_inserter(records));
    }
  }
  return records;
}

void DropUseless(std::vector<Record>& records, const std::string& path, const Target& cpu) {
  BuildCheck check(cpu);
  std::string first;
  const auto dropped = std::erase_if(records, [&](const Record& record) {
    if (record.status != TrialStatus::kOk || !SameMachine(record.target, cpu)) return false;
    std::string why = check.WhyNot(record);
    if (first.empty()) first = why;
    return !why.empty();
  });
  if (dropped == 0) return;
  PrintNote(fmt::format("{}: {} records do not count, today's templates do not build them ({})\n", path,
                        dropped, first));
}

std::vector<Record> LoadUsableRecords(const std::string& path, const Target& cpu) {
  std::vector<Record> records = LoadRecords(path);
  DropUseless(records, path, cpu);
  return records;
}

std::vector<Record> KnownRecords(const std::string& path, ExistingLog existing, const Target& cpu) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    throw Error(ErrorCode::kUsage, fmt::format("{} is a directory, not a log", path));
  const auto bytes = std::filesystem::file_size(path, error);
  if (error || bytes == 0) return {};
  if (existing == ExistingLog::kRefuse) {
    throw Error(
        ErrorCode::kUsage,
        fmt::format("{} exists: give --resume to go on with it, or --overwrite to start afresh", path));
  }
  RequireFormat(path, OutputFormat::kLog);
  if (existing == ExistingLog::kOverwrite) return {};
  return LoadUsableRecords(path, cpu);
}

void BelieveForeignRecords(std::vector<Record>& records, const DevicePtr& machine) {
  for (Record& record : records) {
    record.target = machine->target();
    record.conditions.threads = machine->threads();
  }
}

std::string LogPathBeside(const std::string& path) { return path + ".log.jsonl"; }

std::string CostsPathFor(const std::string& log_path) {
  static constexpr std::string_view kSuffix = ".jsonl";
  const std::string stem =
      log_path.ends_with(kSuffix) ? log_path.substr(0, log_path.size() - kSuffix.size()) : log_path;
  return stem + ".costs.jsonl";
}

}  // namespace tilesmith
