#include "tuner/records/database.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "templates/base/conv_template.h"
#include "tuner/records/log.h"
#include "tuner/records/record_groups.h"
#include "tuner/records/record_key.h"
#include "tuner/records/still_builds.h"

namespace tilesmith {

namespace {

// What file names begin with: "amd_epyc_9b45_avx512"; of other devices than CPUs with their kind in front.
std::string MachineName(const Target& target) {
  std::string name;
  for (char c : target.device == kCpuDevice ? target.model : target.device + " " + target.model) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain) name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!plain && !name.empty() && name.back() != '_') name += '_';
  }
  if (!name.empty() && name.back() != '_') name += '_';
  return name + std::string(IsaName(target.isa));
}

}  // namespace

std::string DatabaseFileName(const Target& target) {
  return fmt::format("{}_{}_{}.jsonl", MachineName(target), target.version, SpaceFingerprint(target.isa));
}

std::string FormerDatabaseFileName(const Target& target) { return MachineName(target) + ".jsonl"; }

TuningDatabase::TuningDatabase(std::string path, const std::string& former_path)
    : path_(std::move(path)), former_path_(former_path) {
  if (!former_path_.empty()) Read(former_path_);
  Read(path_);
}

void TuningDatabase::Read(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return;
  try {
    LogContents contents = ReadLog(path);
    if (!contents.problems.empty()) {
      const LogProblem& first = contents.problems[0];
      warnings_.push_back(fmt::format("{}: {} lines skipped (line {}: {})", path, contents.problems.size(),
                                      first.line, first.message));
    }
    const bool is_former = path == former_path_;
    for (Record& record : contents.records) {
      if (is_former) record.task_trials = 0;
      Enter(std::move(record), is_former);
    }
  } catch (const Error& error) {
    warnings_.emplace_back(error.what());
  }
}

std::vector<Record> TuningDatabase::Find(const ConvWorkload& workload, const Target& target,
                                         const MeasureConditions& conditions) {
  std::vector<Record> known;
  const auto found = by_task_.find(TaskKey(target, workload, conditions).ToString());
  if (found == by_task_.end()) return known;
  for (const Entry& entry : found->second) {
    const bool same_tool = entry.record.target.version == target.version;
    if (same_tool && IsOfUse(entry, target)) known.push_back(entry.record);
  }
  return known;
}

void TuningDatabase::ForEach(const std::function<void(const Record&)>& see) const {
  for (const auto& [task, entries] : by_task_)
    for (const Entry& entry : entries) see(entry.record);
}

void TuningDatabase::Enter(Record record, bool is_former) {
  std::vector<Entry>& entries = by_task_[TaskKey(record).ToString()];
  entries.push_back({std::move(record), is_former});
}

bool TuningDatabase::IsOfUse(const Entry& entry, const Target& target) {
  std::string why = WhyNotBuilt(entry.record, target);
  if (why.empty()) return true;
  Useless& useless = useless_[entry.is_former ? 1 : 0];
  if (useless.records++ == 0) useless.first = std::move(why);
  return false;
}

std::vector<std::string> TuningDatabase::WarningsOfUseless() const {
  std::vector<std::string> warnings;
  for (const bool is_former : {false, true}) {
    const Useless& useless = useless_[is_former ? 1 : 0];
    if (useless.records == 0) continue;
    warnings.push_back(fmt::format("{}: {} records do not count, today's templates do not build them ({})",
                                   is_former ? former_path_ : path_, useless.records, useless.first));
  }
  return warnings;
}

bool TuningDatabase::Add(std::span<const Record> records, int trials) {
  try {
    if (!FileExists(path_)) RequireWritableDirectory(std::filesystem::path(path_).parent_path());
    LogWriter writer(path_);
    for (const Record* best : Distill(records, {.use = RecordUse::kTuning})) {
      Record record = *best;
      record.task_trials = std::max(trials, record.task_trials);
      writer.Append(record);
      Enter(std::move(record), false);
    }
    return true;
  } catch (const std::exception& error) {
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
