#include "tuner/database.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <tuple>

#include "layouts/base/error.h"
#include "tuner/log.h"
#include "tuner/record_groups.h"

namespace tilesmith {

std::string DatabaseFileName(const Target& target) {
  std::string name;
  for (char c : target.cpu_model) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain) name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!plain && !name.empty() && name.back() != '_') name += '_';
  }
  if (!name.empty() && name.back() != '_') name += '_';
  return name + std::string(IsaName(target.isa)) + ".jsonl";
}

std::vector<Record> Distilled(std::span<const Record> records, int trials) {
  std::map<std::tuple<std::string, LayoutPair>, const Record*> best;
  for (const Record& record : records) {
    if (record.status != TrialStatus::kOk || record.early_stopped) continue;
    const Record*& known = best[{record.template_name, record.layouts}];
    if (known == nullptr || IsBetterRecord(record, *known)) known = &record;
  }
  std::vector<Record> distilled;
  for (const auto& [key, record] : best) {
    distilled.push_back(*record);
    distilled.back().task_trials = std::max(trials, record->task_trials);
  }
  return distilled;
}

TuningDatabase::TuningDatabase(std::string path) : path_(std::move(path)) {
  std::error_code ignored;
  if (!std::filesystem::exists(path_, ignored)) return;
  try {
    LogContents contents = ReadLog(path_);
    if (!contents.problems.empty()) {
      const LogProblem& first = contents.problems[0];
      warnings_.push_back(fmt::format("{}: {} lines skipped (line {}: {})", path_, contents.problems.size(),
                                      first.line, first.message));
    }
    for (Record& record : contents.records) {
      by_workload_[WorkloadToString(record.workload)].push_back(std::move(record));
    }
  } catch (const Error& error) {
    warnings_.emplace_back(error.what());
  }
}

std::vector<Record> TuningDatabase::Find(const ConvWorkload& workload, const Target& target,
                                         const MeasureConditions& conditions) const {
  std::vector<Record> known;
  const auto found = by_workload_.find(WorkloadToString(workload));
  if (found == by_workload_.end()) return known;
  for (const Record& record : found->second) {
    const bool same_tool = record.target.tool_version == target.tool_version;
    if (SameMachine(record.target, target) && same_tool && record.conditions == conditions) {
      known.push_back(record);
    }
  }
  return known;
}

bool TuningDatabase::Add(std::span<const Record> records) {
  try {
    const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
    if (!folder.empty()) std::filesystem::create_directories(folder);
    LogWriter writer(path_);
    for (const Record& record : records) {
      writer.Append(record);
      by_workload_[WorkloadToString(record.workload)].push_back(record);
    }
    return true;
  } catch (const std::exception& error) {  // of the file system, or an Error that names the file
    warnings_.emplace_back(error.what());
    return false;
  }
}

int TrialsBehind(std::span<const Record> records) {
  int trials = 0;
  for (const Record& record : records) trials = std::max(trials, record.task_trials);
  return trials;
}

}  // namespace tilesmith
